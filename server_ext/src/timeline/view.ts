// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * What of a timeline is shown, without any word and any element: the five phases with
 * what each took, what came after, and the starts before this one.
 */
import { instant } from './amounts.js';
import { ENDED, PHASE_OF } from './contract.js';
import type {
  IExplanation,
  IProgress,
  ITimeline,
  ITimelineEvent,
  Phase,
  State
} from './contract.js';

/** The phases in the order in which people see them. */
export const PHASES: readonly Phase[] = [
  'asked',
  'waiting',
  'placed',
  'starting',
  'ready'
];

/** What may be done where a choice can never run beside the files. */
const INSTEAD: ReadonlySet<string> = new Set([
  'keep_class',
  'copy_files',
  'fresh_folder'
]);

/** How many notes of one phase are shown; the document has all. */
const MOST_NOTES = 5;

/** How far a phase is; `held`: nobody knows, because its machine is silent. */
export type StepStatus = 'done' | 'now' | 'todo' | 'failed' | 'held';

/** One of the five phases. */
export interface IStep {
  phase: Phase;
  status: StepStatus;
  /** Milliseconds since the epoch; null: not begun, or no longer kept. */
  began: number | null;
  /** All visits together; null: not begun, no longer kept, or it takes no time. */
  seconds: number | null;
  explanation: IExplanation | null;
  /** What may be done instead of what was refused in it. */
  instead: readonly IExplanation[];
  /** What else was told in it, such as a promise that was not kept. */
  notes: readonly ITimelineEvent[];
  machine: string | null;
  /** The newest state of each thing that was done. */
  progress: readonly IProgress[];
}

/** An earlier start of the same server. */
export interface IRun {
  generation: number;
  began: number | null;
  /** How long it took to be ready; null: it never was. */
  admittedSeconds: number | null;
  outcome: State;
  explanation: IExplanation | null;
}

/** Everything that is shown of a timeline. */
export interface IView {
  /** The moment that it is seen from. */
  now: number;
  steps: readonly IStep[];
  /** The phase that it is in, or in which it ended. */
  at: Phase;
  readyAt: number | null;
  totalSeconds: number | null;
  waitingSeconds: number;
  startingSeconds: number;
  since: readonly ITimelineEvent[];
  runs: readonly IRun[];
}

/** Return the events in the order in which they happened. */
export function ordered(timeline: ITimeline): ITimelineEvent[] {
  return [...(timeline.events ?? [])].sort((one, other) => one.seq - other.seq);
}

/** Return what is shown of a timeline at a moment of the controller's clock. */
export function view(timeline: ITimeline, now: number): IView {
  const all = ordered(timeline);
  const events = all.filter(event => event.generation === timeline.generation);
  const visits = visitsOf(events, timeline, now);
  const at = visits.at(-1)?.phase ?? timeline.phase;
  const steps = PHASES.map(phase => stepOf(phase, at, visits, timeline));
  const asked = instant(events[0]?.at);
  const readyAt = visits.find(visit => visit.phase === 'ready')?.began ?? null;
  const last = visits.at(-1)?.ended ?? now;
  const seconds = (phase: Phase) =>
    visits
      .filter(visit => visit.phase === phase)
      .reduce((sum, visit) => sum + visit.seconds, 0);
  return {
    now,
    steps,
    at,
    readyAt,
    totalSeconds:
      asked === null || timeline.truncated
        ? null
        : Math.max(0, ((readyAt ?? last) - asked) / 1000),
    waitingSeconds: seconds('asked') + seconds('waiting'),
    startingSeconds: seconds('placed') + seconds('starting'),
    since: sinceReady(events),
    runs: runsBefore(all, timeline.generation)
  };
}

/** A stretch of time in one phase. */
interface IVisit {
  phase: Phase;
  began: number;
  ended: number;
  seconds: number;
  events: ITimelineEvent[];
}

/**
 * Cut the events into visits of phases. A workload that a machine hands back visits
 * `waiting` twice. An end, a stop and silence belong to the phase that they meet.
 */
function visitsOf(
  events: readonly ITimelineEvent[],
  timeline: ITimeline,
  now: number
): IVisit[] {
  const visits: IVisit[] = [];
  for (const event of events) {
    const at = instant(event.at) ?? now;
    const last = visits.at(-1);
    const phase = phaseOf(event) ?? last?.phase ?? 'asked';
    if (last) {
      last.ended = at;
    }
    if (last?.phase === phase) {
      last.events.push(event);
    } else {
      visits.push({ phase, began: at, ended: at, seconds: 0, events: [event] });
    }
  }
  const last = visits.at(-1);
  if (last && !ENDED.has(timeline.state)) {
    last.ended = Math.max(now, last.ended);
  }
  for (const visit of visits) {
    visit.seconds = Math.max(0, (visit.ended - visit.began) / 1000);
  }
  return visits;
}

function phaseOf(event: ITimelineEvent): Phase | null {
  const belongsToTheLast =
    ENDED.has(event.state) ||
    event.state === 'stopping' ||
    event.state === 'unknown';
  return belongsToTheLast ? null : (PHASE_OF[event.state] ?? null);
}

function stepOf(
  phase: Phase,
  at: Phase,
  visits: readonly IVisit[],
  timeline: ITimeline
): IStep {
  const mine = visits.filter(visit => visit.phase === phase);
  const events = mine.flatMap(visit => visit.events);
  const status = statusOf(phase, at, timeline.state);
  const taken = mine.reduce((sum, visit) => sum + visit.seconds, 0);
  const skipped = status === 'done' && !timeline.truncated;
  const explanation = explanationOf(phase, at, events, timeline);
  const isTimed = phase !== 'ready' && status !== 'todo';
  return {
    phase,
    status,
    began: mine[0]?.began ?? null,
    seconds: isTimed && (mine.length > 0 || skipped) ? taken : null,
    explanation,
    notes: phase === 'ready' ? [] : notesOf(events, explanation),
    instead: insteadOf(phase, at, events, timeline),
    machine: events.findLast(event => event.machine)?.machine ?? null,
    progress: progressOf(events)
  };
}

function statusOf(phase: Phase, at: Phase, state: State): StepStatus {
  const distance = PHASES.indexOf(phase) - PHASES.indexOf(at);
  if (distance !== 0) {
    return distance < 0 ? 'done' : 'todo';
  }
  if (phase === 'ready') {
    // It was ready, whatever came later; that is told below the phases.
    return 'done';
  }
  if (state === 'unknown') {
    return 'held';
  }
  return ENDED.has(state) ? 'failed' : 'now';
}

function explanationOf(
  phase: Phase,
  at: Phase,
  events: readonly ITimelineEvent[],
  timeline: ITimeline
): IExplanation | null {
  if (phase === at && phase !== 'ready' && timeline.explanation) {
    return timeline.explanation;
  }
  const told = events.filter(
    event => event.explanation && (phase !== 'ready' || event.kind === 'ready')
  );
  // A note says what happened meanwhile: it is the reason only where there is no other.
  const reason = told.findLast(event => event.kind !== 'note') ?? told.at(-1);
  return reason?.explanation ?? null;
}

/** Return the latest notes that the explanation does not tell. */
function notesOf(
  events: readonly ITimelineEvent[],
  explanation: IExplanation | null
): ITimelineEvent[] {
  return events
    .filter(
      ({ kind, explanation: told }) =>
        kind === 'note' &&
        told &&
        !INSTEAD.has(told.reason) &&
        told.reason !== explanation?.reason
    )
    .slice(-MOST_NOTES);
}

function insteadOf(
  phase: Phase,
  at: Phase,
  events: readonly ITimelineEvent[],
  timeline: ITimeline
): IExplanation[] {
  if (phase !== at || timeline.state !== 'refused') {
    return [];
  }
  return events
    .map(event => event.explanation)
    .filter(explanation => explanation != null)
    .filter(explanation => INSTEAD.has(explanation.reason));
}

function progressOf(events: readonly ITimelineEvent[]): IProgress[] {
  const newest = new Map<string, IProgress>();
  for (const event of events) {
    if (event.progress) {
      newest.set(event.progress.step, event.progress);
    }
  }
  return [...newest.values()];
}

function sinceReady(events: readonly ITimelineEvent[]): ITimelineEvent[] {
  const ready = events.findIndex(event => event.state === 'ready');
  return ready < 0
    ? []
    : events.slice(ready + 1).filter(event => event.kind !== 'ready');
}

function runsBefore(
  events: readonly ITimelineEvent[],
  generation: number
): IRun[] {
  const runs = new Map<number, ITimelineEvent[]>();
  for (const event of events) {
    if (event.generation < generation) {
      runs.set(event.generation, [
        ...(runs.get(event.generation) ?? []),
        event
      ]);
    }
  }
  return [...runs].reverse().map(([number, mine]) => runOf(number, mine));
}

function runOf(generation: number, events: readonly ITimelineEvent[]): IRun {
  const began = instant(events[0]?.at);
  const ready = instant(events.find(event => event.state === 'ready')?.at);
  return {
    generation,
    began,
    admittedSeconds:
      ready === null || began === null
        ? null
        : Math.max(0, (ready - began) / 1000),
    outcome: events.at(-1)?.state ?? 'stopped',
    explanation:
      events.findLast(event => event.explanation)?.explanation ?? null
  };
}
