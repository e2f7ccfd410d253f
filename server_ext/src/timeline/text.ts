// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * A timeline for a message to whoever helps: fixed width, in UTC and in English,
 * without tokens and without other people's names.
 */
import { duration, instant, utc } from './amounts.js';
import { SCHEMA } from './contract.js';
import type { IExplanation, ITimeline, ITimelineEvent } from './contract.js';
import { foreign } from './foreign.js';
import { english } from './translator.js';
import { ordered, view } from './view.js';
import { Words } from './words.js';

/** Every time in UTC, whatever the clock of whoever copies says. */
class SupportWords extends Words {
  override clock(at: number): string {
    return `${utc(at)} UTC`;
  }
}

/** Return the timeline as text; `extra` lines say what else helps, such as versions. */
export function asText(
  timeline: ITimeline,
  now: number,
  extra: readonly (readonly [string, string])[] = []
): string {
  const words = new SupportWords(english, 'en');
  const told = anonymous(timeline);
  const { explanation } = told;
  const limits = words.limits(timeline.limits, now);
  const facts: (readonly [string, string])[] = [
    ['state', words.headline(told, view(told, now))],
    ['why', explanation ? coded(explanation, words, now) : ''],
    ['request', `${foreign(timeline.workload)} start ${timeline.generation}`],
    ['user', foreign(timeline.user)],
    ['server', foreign(timeline.server) || '(default)'],
    ['profile', foreign(timeline.profile)],
    ['class', foreign(timeline.class)],
    ['machine', foreign(timeline.machine)],
    ['limits', limits.map(limit => limit.text).join('; ')],
    ['as of', `${utc(instant(timeline.as_of))} UTC`],
    ['schema', foreign(timeline.schema) || SCHEMA],
    ...extra
  ];
  return [
    ...facts
      .filter(([, fact]) => fact)
      .map(([name, fact]) => `${name.padEnd(10)}${fact}`),
    ...eventLines(told, words, now),
    ''
  ].join('\n');
}

const HEADER = `   #  ${'UTC'.padEnd(19)}${'after'.padStart(12)}  what`;

/** Return the document as it came. */
export function asJson(timeline: ITimeline): string {
  return `${JSON.stringify(timeline, null, 2)}\n`;
}

function eventLines(timeline: ITimeline, words: Words, now: number): string[] {
  const lines: string[] = [];
  let generation = 0;
  let began: number | null = null;
  for (const event of ordered(timeline)) {
    if (event.generation !== generation) {
      generation = event.generation;
      began = instant(event.at);
      lines.push('', `start ${generation}`, HEADER);
    }
    lines.push(eventLine(event, began, words, now));
  }
  if (timeline.truncated) {
    lines.unshift('', 'Older steps are no longer kept.');
  }
  return lines;
}

function eventLine(
  event: ITimelineEvent,
  began: number | null,
  words: Words,
  now: number
): string {
  const at = instant(event.at);
  const after = at === null || began === null ? null : (at - began) / 1000;
  const why = event.explanation ? coded(event.explanation, words, now) : '';
  const told = event.kind === 'note' && why ? '' : words.event(event);
  const what = [told, why].filter(Boolean).join(': ');
  const took = duration(english, after).padStart(12);
  return `${String(event.seq).padStart(4)}  ${utc(at).padEnd(19)}${took}  ${what}`;
}

/** Leave out who the others are: who holds a place, who drains a machine. */
function anonymous(timeline: ITimeline): ITimeline {
  return {
    ...timeline,
    explanation: nameless(timeline.explanation),
    events: (timeline.events ?? []).map(event => ({
      ...event,
      explanation: nameless(event.explanation)
    }))
  };
}

/** Reasons whose subject is a person. */
const NAMING: ReadonlySet<string> = new Set(['draining', 'release_wished']);

function nameless(
  explanation: IExplanation | null | undefined
): IExplanation | null {
  if (!explanation) {
    return null;
  }
  const holders = (explanation.holders ?? []).map(holder => ({
    ...holder,
    owner: null,
    title: null
  }));
  const { reason, subject = null } = explanation;
  return {
    ...explanation,
    holders,
    subject: NAMING.has(reason) ? null : subject
  };
}

/** Say why, with the code that a search finds. */
function coded(explanation: IExplanation, words: Words, now: number): string {
  return `${words.why(explanation, now)} [${explanation.reason}]`;
}
