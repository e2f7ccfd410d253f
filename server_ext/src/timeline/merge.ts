// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { ITimeline, ITimelineEvent } from './contract.js';

/** How many events are kept; the document itself holds no more. */
const MOST_EVENTS = 500;

/** Return the number of the last event that is known, 0 where there is none. */
export function lastSeq(timeline: ITimeline | null): number {
  return (timeline?.events ?? []).reduce(
    (last, event) => Math.max(last, event.seq),
    0
  );
}

/**
 * Return `newer` with the events that are known already before its own.
 *
 * `newer` may hold only the events after the last one that was known.
 */
export function merge(known: ITimeline | null, newer: ITimeline): ITimeline {
  if (known?.workload !== newer.workload) {
    return newer;
  }
  const events = new Map<number, ITimelineEvent>();
  for (const event of [...(known.events ?? []), ...(newer.events ?? [])]) {
    events.set(event.seq, event);
  }
  const all = [...events.values()].sort((one, other) => one.seq - other.seq);
  return {
    ...newer,
    events: all.slice(-MOST_EVENTS),
    truncated: Boolean(newer.truncated) || all.length > MOST_EVENTS
  };
}
