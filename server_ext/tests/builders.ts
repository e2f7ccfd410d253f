// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { IAnswer } from '../src/answer.js';
import type {
  ITimeline,
  ITimelineEvent,
  State
} from '../src/timeline/contract.js';

/** The day of all tests; its seconds are counted from ten o'clock. */
export const TEN = Date.parse('2026-11-29T10:00:00Z');

/** Return the wire's text for some seconds after ten. */
export function at(seconds: number): string {
  return new Date(TEN + seconds * 1000).toISOString();
}

/** Return an event that leads to a state. */
export function anEvent(
  seq: number,
  seconds: number,
  state: State,
  more: Partial<ITimelineEvent> = {}
): ITimelineEvent {
  const kinds: Partial<Record<State, ITimelineEvent['kind']>> = {
    requested: 'asked',
    queued: 'waiting',
    unknown: 'silent'
  };
  const kind = kinds[state] ?? (state as ITimelineEvent['kind']);
  return { seq, generation: 1, at: at(seconds), kind, state, ...more };
}

/** Return the events of a start that waited 160 s and took 32 s more. */
export function anAdmission(): ITimelineEvent[] {
  return [
    anEvent(1, 0, 'requested'),
    anEvent(2, 0, 'queued', {
      explanation: {
        reason: 'gpu_busy',
        requested: 1,
        free: 0,
        unit: 'devices',
        holders: [{ workload: 'w0', owner: 'grace', title: 'GPU large' }]
      }
    }),
    anEvent(3, 160, 'placed', { machine: 'gpu-17' }),
    anEvent(4, 164, 'preparing'),
    anEvent(5, 165, 'preparing', {
      kind: 'progress',
      progress: { step: 'install_packages', done: 12, total: 40 }
    }),
    anEvent(6, 170, 'preparing', {
      kind: 'progress',
      progress: { step: 'install_packages', done: 40, total: 40 }
    }),
    anEvent(7, 180, 'starting'),
    anEvent(8, 192, 'ready')
  ];
}

/** Return a timeline whose state is that of its last event. */
export function aTimeline(
  events: ITimelineEvent[] = anAdmission(),
  more: Partial<ITimeline> = {}
): ITimeline {
  return {
    schema: 'jupyterhub-fleet/timeline/v1',
    as_of: at(200),
    workload: '01J8',
    generation: 1,
    user: 'ada',
    server: 'gpu',
    profile: 'gpu-large',
    profile_title: 'GPU large',
    class: 'gpu-large',
    machine: 'gpu-17',
    state: events.at(-1)?.state ?? 'requested',
    phase: 'ready',
    headline: 'Ready.',
    events,
    ...more
  };
}

/** Return what the notebook server answers. */
export function anAnswer(
  timeline: ITimeline | null = aTimeline(),
  more: Partial<IAnswer> = {}
): IAnswer {
  return {
    schema: 'jupyterhub-fleet/notebook-timeline/v1',
    standing: 'live',
    cause: null,
    message: '',
    heard_at: timeline?.as_of ?? null,
    heard_seconds_ago: timeline ? 0 : null,
    timeline,
    ...more
  };
}
