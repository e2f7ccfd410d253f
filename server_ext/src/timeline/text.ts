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

/** Return the timeline as text; `extra` lines say what else helps, such as versions. */
export function asText(
  timeline: ITimeline,
  now: number,
  extra: readonly (readonly [string, string])[] = []
): string {
  const words = new Words(english, 'en');
  const { explanation } = timeline;
  const facts: (readonly [string, string])[] = [
    ['state', words.headline(timeline, view(timeline, now))],
    ['why', explanation ? anonymous(explanation, words) : ''],
    ['request', `${foreign(timeline.workload)} start ${timeline.generation}`],
    ['user', foreign(timeline.user)],
    ['server', foreign(timeline.server) || '(default)'],
    ['profile', foreign(timeline.profile)],
    ['class', foreign(timeline.class)],
    ['machine', foreign(timeline.machine)],
    ['as of', `${utc(instant(timeline.as_of))} UTC`],
    ['schema', foreign(timeline.schema) || SCHEMA],
    ...extra
  ];
  return [
    ...facts
      .filter(([, fact]) => fact)
      .map(([name, fact]) => `${name.padEnd(10)}${fact}`),
    ...eventLines(timeline, words),
    ''
  ].join('\n');
}

const HEADER = `   #  ${'UTC'.padEnd(19)}${'after'.padStart(12)}  what`;

/** Return the document as it came. */
export function asJson(timeline: ITimeline): string {
  return `${JSON.stringify(timeline, null, 2)}\n`;
}

function eventLines(timeline: ITimeline, words: Words): string[] {
  const lines: string[] = [];
  let generation = 0;
  let began: number | null = null;
  for (const event of ordered(timeline)) {
    if (event.generation !== generation) {
      generation = event.generation;
      began = instant(event.at);
      lines.push('', `start ${generation}`, HEADER);
    }
    lines.push(eventLine(event, began, words));
  }
  if (timeline.truncated) {
    lines.unshift('', 'Older steps are no longer kept.');
  }
  return lines;
}

function eventLine(
  event: ITimelineEvent,
  began: number | null,
  words: Words
): string {
  const at = instant(event.at);
  const after = at === null || began === null ? null : (at - began) / 1000;
  const why = event.explanation ? anonymous(event.explanation, words) : '';
  const what = [words.event(event), why].filter(Boolean).join(': ');
  const took = duration(english, after).padStart(12);
  return `${String(event.seq).padStart(4)}  ${utc(at).padEnd(19)}${took}  ${what}`;
}

function anonymous(explanation: IExplanation, words: Words): string {
  const holders = (explanation.holders ?? []).map(holder => ({
    ...holder,
    owner: null,
    title: null
  }));
  const code = explanation.reason;
  return `${words.why({ ...explanation, holders })} [${code}]`;
}
