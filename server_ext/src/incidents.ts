// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** Which things of a timeline are worth interrupting somebody for. */
import { instant } from './timeline/index.js';
import type { ITimeline, ITimelineEvent, Words } from './timeline/index.js';
import { foreign } from './timeline/foreign.js';

/** A note that is older is not told to whoever opens a page. */
const NEWS_MS = 3_600_000;

/** Something that is told once, and told again only when it has become another thing. */
export interface IIncident {
  /** The same for as long as it is the same incident. */
  id: string;
  type: 'info' | 'warning' | 'error' | 'success';
  message: string;
  /** Whether it has passed; it is then told only to whoever was told of it before. */
  isOver: boolean;
}

/** Return the incidents of a timeline as of now. */
export function incidents(
  timeline: ITimeline,
  words: Words,
  now: number,
  noticeMinutes: number
): IIncident[] {
  return [
    ...ending(timeline, words, now, noticeMinutes),
    ...silence(timeline, words),
    ...notes(timeline, words, now),
    ...end(timeline, words, now)
  ];
}

/** Return in how many milliseconds time alone makes an incident; null: never. */
export function untilNotice(
  timeline: ITimeline | null,
  now: number,
  noticeMinutes: number
): number | null {
  const endsAt = instant(timeline?.limits?.ends_at);
  if (timeline?.state !== 'ready' || endsAt === null) {
    return null;
  }
  const left = endsAt - noticeMinutes * 60_000 - now;
  return left > 0 ? left : null;
}

function ending(
  timeline: ITimeline,
  words: Words,
  now: number,
  noticeMinutes: number
): IIncident[] {
  const endsAt = instant(timeline.limits?.ends_at);
  if (endsAt === null || timeline.state !== 'ready' || noticeMinutes === 0) {
    return [];
  }
  const left = (endsAt - now) / 1000;
  if (left <= 0 || left > noticeMinutes * 60) {
    return [];
  }
  const { trans } = words;
  return [
    {
      id: `${run(timeline)}:ends:${endsAt}`,
      type: 'warning',
      message: trans.__(
        // It stays on the screen, so it must not say how long that is.
        'This server ends at %1: its time limit is over then. Save your work.',
        words.clock(endsAt, now)
      ),
      isOver: false
    }
  ];
}

/** What somebody has to hear who does not look: others wait, or it ends soon. */
function notes(timeline: ITimeline, words: Words, now: number): IIncident[] {
  const isNews = ({ generation, at, explanation }: ITimelineEvent) =>
    generation === timeline.generation &&
    now - (instant(at) ?? 0) < NEWS_MS &&
    (explanation?.reason === 'release_wished' ||
      (explanation?.reason === 'idle_soon' && timeline.limits?.idle_ends));
  return (timeline.events ?? [])
    .filter(event => timeline.state === 'ready' && isNews(event))
    .map(event => ({
      id: `${run(timeline)}:note:${event.seq}`,
      type: 'warning',
      message: words.event(event),
      isOver: false
    }));
}

function silence(timeline: ITimeline, words: Words): IIncident[] {
  const events = (timeline.events ?? []).filter(
    event => event.generation === timeline.generation
  );
  const silent = events.findLast(event => event.kind === 'silent');
  if (!silent) {
    return [];
  }
  const isOver = timeline.state !== 'unknown';
  const machine = foreign(silent.machine ?? timeline.machine);
  const { trans } = words;
  const ended = timeline.state === 'failed' || timeline.state === 'stopped';
  if (ended) {
    // That it ended says more.
    return [];
  }
  return [
    {
      id: `${run(timeline)}:silent:${silent.seq}`,
      type: isOver ? 'success' : 'warning',
      message: isOver
        ? trans.__('The machine %1 answers again.', machine)
        : trans.__(
            'The machine %1 does not answer the fleet. What runs on it is still held.',
            machine
          ),
      isOver
    }
  ];
}

function end(timeline: ITimeline, words: Words, now: number): IIncident[] {
  const { state, explanation } = timeline;
  if (!['stopping', 'stopped', 'failed'].includes(state)) {
    return [];
  }
  const { trans } = words;
  const why = explanation ? words.why(explanation, now) : '';
  const what = state === 'failed' ? trans.__('This server failed.') : '';
  const plain =
    state === 'stopping'
      ? trans.__('This server is being stopped.')
      : trans.__('This server was stopped.');
  return [
    {
      id: `${run(timeline)}:end`,
      type: state === 'failed' ? 'error' : 'warning',
      message: [what || plain, why].filter(Boolean).join(' '),
      isOver: false
    }
  ];
}

function run(timeline: ITimeline): string {
  return `${timeline.workload}:${timeline.generation}`;
}
