// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** What the status bar says of a timeline: a word or a short phrase. */
import type { IStanding } from './standing.js';
import { isStale, notice } from './standing.js';
import { duration, instant, roughly } from './timeline/amounts.js';
import { foreign } from './timeline/foreign.js';
import { view } from './timeline/index.js';
import type { ITimeline, Words } from './timeline/index.js';

/** For how long after it was ready the admission is news. */
const NEWS_SECONDS = 60;

/** What the item shows. */
export interface IStatus {
  /** Empty: the item is hidden. */
  text: string;
  /** What is told when it is pointed at. */
  hint: string;
}

/** Return what the item shows as of now. */
export function status(
  model: IStanding & { timeline: ITimeline | null },
  words: Words,
  now: number,
  noticeMinutes: number
): IStatus {
  const { trans } = words;
  const { standing, timeline } = model;
  if (['loading', 'no_hub', 'no_extension', 'forbidden'].includes(standing)) {
    return { text: '', hint: '' };
  }
  const open = trans.__('Click for the timeline.');
  if (isStale(standing)) {
    const text =
      standing === 'offline'
        ? trans.__('? Admission: offline')
        : trans.__('? Admission: no answer');
    return { text, hint: `${notice(trans, model)} ${open}` };
  }
  if (!timeline) {
    const hint = `${notice(trans, model)} ${open}`;
    return { text: trans.__('? Admission'), hint };
  }
  const headline = words.headline(timeline, view(timeline, now));
  return {
    text: phrase(timeline, words, now, noticeMinutes),
    hint: `${headline} ${open}`
  };
}

function phrase(
  timeline: ITimeline,
  words: Words,
  now: number,
  noticeMinutes: number
): string {
  const { trans } = words;
  switch (timeline.state) {
    case 'ready':
      return ready(timeline, words, now, noticeMinutes);
    case 'requested':
    case 'queued':
      return timeline.position
        ? trans.__('● Waiting: %1 ahead', timeline.position)
        : trans.__('● Waiting');
    case 'placed':
    case 'preparing':
    case 'starting':
      return trans.__('● Starting');
    case 'stopping':
      return trans.__('● Stopping');
    case 'unknown':
      return trans.__('‖ Machine silent');
    case 'failed':
      return trans.__('✕ Failed');
    case 'refused':
      return trans.__('✕ Refused');
    default:
      return `✕ ${words.state(timeline.state)}`;
  }
}

function ready(
  timeline: ITimeline,
  words: Words,
  now: number,
  noticeMinutes: number
): string {
  const { trans } = words;
  const endsAt = instant(timeline.limits?.ends_at);
  const left = endsAt === null ? null : (endsAt - now) / 1000;
  if (left !== null && left <= noticeMinutes * 60) {
    return left > 0
      ? trans.__('⚠ Ends in %1', roughly(trans, left))
      : trans.__('⚠ Time limit is over');
  }
  const shown = view(timeline, now);
  const isNews =
    shown.readyAt !== null && (now - shown.readyAt) / 1000 < NEWS_SECONDS;
  if (isNews && shown.totalSeconds !== null) {
    return trans.__('✓ Admitted in %1', duration(trans, shown.totalSeconds));
  }
  const name = foreign(timeline.class ?? timeline.machine);
  return name ? trans.__('✓ %1', name) : trans.__('✓ Admitted');
}
