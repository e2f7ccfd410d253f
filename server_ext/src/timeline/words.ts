// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * The words of a timeline: from codes and numbers to what a person reads.
 *
 * Every text is a literal inside `trans.__` or `trans._n`, where the tools that collect
 * texts for translators find it.
 */
import { bytes, clock, duration, instant, moment, roughly } from './amounts.js';
import type {
  IExplanation,
  ILimits,
  IProgress,
  ITimeline,
  ITimelineEvent,
  Phase,
  State
} from './contract.js';
import { foreign } from './foreign.js';
import { inside, remedy, sentence } from './reasons.js';
import { english } from './translator.js';
import type { ITranslator } from './translator.js';
import type { IRun, IStep, IView, StepStatus } from './view.js';

/** One limit in force. */
export interface ILimitLine {
  key: string;
  text: string;
  /** When it ends; null: it is no time limit. */
  endsAt: number | null;
}

/** Everything that a timeline says, in one language. */
export class Words {
  constructor(
    readonly trans: ITranslator = english,
    readonly locale?: string
  ) {}

  /** Name the whole. */
  title(timeline: ITimeline | null): string {
    const server = foreign(timeline?.server);
    return server
      ? this.trans.__('Admission timeline of server “%1”', server)
      : this.trans.__('Admission timeline');
  }

  /** Say in one plain sentence what is now. It changes with the state alone. */
  headline(timeline: ITimeline, shown: IView): string {
    const { trans } = this;
    const machine = foreign(timeline.machine);
    switch (timeline.state) {
      case 'requested':
        return trans.__('Asked for; not looked at yet.');
      case 'queued':
        return this._inLine(timeline);
      case 'placed':
        return machine
          ? trans.__('A place was found on %1.', machine)
          : trans.__('A place was found.');
      case 'preparing':
        return machine
          ? trans.__('Preparing the environment on %1.', machine)
          : trans.__('Preparing the environment.');
      case 'starting':
        return machine
          ? trans.__('Starting the server on %1.', machine)
          : trans.__('Starting the server.');
      case 'ready':
        return this._ready(shown, machine);
      case 'stopping':
        return machine
          ? trans.__('Stopping on %1.', machine)
          : trans.__('Stopping.');
      case 'unknown':
        return trans.__(
          '%1 does not answer; what runs there is kept.',
          machine || trans.__('The machine')
        );
      case 'stopped':
      case 'failed':
      case 'refused':
        return this._ended(timeline.state, timeline.explanation ?? null);
      default:
        // A newer controller has states that have no words here yet.
        return foreign(timeline.headline);
    }
  }

  /** Say the same where the reason stands in the row beneath: it is not repeated. */
  lead(timeline: ITimeline, shown: IView): string {
    return timeline.state === 'queued'
      ? this._inLine({ ...timeline, explanation: null })
      : this.headline(timeline, shown);
  }

  private _inLine(timeline: ITimeline): string {
    const { trans } = this;
    const ahead = timeline.position ?? null;
    const why = timeline.explanation;
    return [
      ahead === 0 ? trans.__('You are next.') : '',
      ahead ? trans.__('%1 ahead of you.', ahead) : '',
      why ? this.why(why) : trans.__('Waiting in line.'),
      timeline.parked ? trans.__('Your place is kept.') : ''
    ]
      .filter(Boolean)
      .join(' ');
  }

  private _ready(shown: IView, machine: string): string {
    const { trans } = this;
    if (shown.totalSeconds === null) {
      return machine ? trans.__('Ready on %1.', machine) : trans.__('Ready.');
    }
    const took = duration(trans, shown.totalSeconds);
    return machine
      ? trans.__('Ready on %1, admitted in %2.', machine, took)
      : trans.__('Ready, admitted in %1.', took);
  }

  private _ended(
    state: 'stopped' | 'failed' | 'refused',
    explanation: IExplanation | null
  ): string {
    const { trans } = this;
    const why = explanation ? inside(this.why(explanation)) : '';
    switch (state) {
      case 'stopped':
        return why ? trans.__('Stopped: %1', why) : trans.__('Stopped.');
      case 'failed':
        return why
          ? trans.__('The start failed: %1', why)
          : trans.__('The start failed.');
      case 'refused':
        return why
          ? trans.__('This cannot run as asked: %1', why)
          : trans.__('This cannot run as asked.');
    }
  }

  /** Say why, with the numbers and the holders. */
  why(explanation: IExplanation): string {
    return sentence(this.trans, explanation, at => this.clock(at));
  }

  /** Say what would help; empty where nothing is known to. */
  remedy(explanation: IExplanation): string {
    return remedy(this.trans, explanation);
  }

  /** Name a phase. */
  step(step: IStep, timeline: ITimeline): string {
    const { trans } = this;
    const profile = foreign(timeline.profile_title ?? timeline.profile);
    const machine = foreign(step.machine ?? timeline.machine);
    switch (step.phase) {
      case 'asked':
        return profile ? trans.__('Asked for %1', profile) : trans.__('Asked');
      case 'waiting':
        return trans.__('Waiting in line');
      case 'placed':
        return machine && step.status !== 'todo'
          ? trans.__('Placed on %1', machine)
          : trans.__('Placed on a machine');
      case 'starting':
        return trans.__('Starting the server');
      case 'ready':
        return trans.__('Ready');
    }
  }

  /** Name a phase as the short label of a bar. */
  phase(phase: Phase): string {
    const { trans } = this;
    return {
      asked: trans.__('Asked'),
      waiting: trans.__('Waiting'),
      placed: trans.__('Placed'),
      starting: trans.__('Starting'),
      ready: trans.__('Ready')
    }[phase];
  }

  /** Say the status that a glyph stands for. */
  status(status: StepStatus): string {
    const { trans } = this;
    return {
      done: trans.__('done'),
      now: trans.__('now'),
      todo: trans.__('not yet'),
      failed: trans.__('ended here'),
      held: trans.__('no answer')
    }[status];
  }

  /** Say where the time went; empty while there is nothing to tell. */
  spent(shown: IView): string {
    const { trans } = this;
    if (shown.totalSeconds === null) {
      return '';
    }
    return trans.__(
      '%1 in all, %2 of it waiting',
      duration(trans, shown.totalSeconds),
      duration(trans, shown.waitingSeconds)
    );
  }

  /** Say what happened. */
  event(event: ITimelineEvent): string {
    const { trans } = this;
    const machine = foreign(event.machine);
    switch (event.kind) {
      case 'asked':
        return trans.__('Asked');
      case 'waiting':
        return trans.__('Waiting in line');
      case 'parked':
        return trans.__('The Hub stopped waiting; the place is kept');
      case 'placed':
        return machine
          ? trans.__('Placed on %1', machine)
          : trans.__('Placed on a machine');
      case 'preparing':
        return trans.__('Preparing the environment');
      case 'progress':
        return event.progress
          ? this.progress(event.progress)
          : trans.__('Preparing the environment');
      case 'starting':
        return trans.__('Starting the server');
      case 'ready':
        return trans.__('Ready');
      case 'stopping':
        return trans.__('Stopping');
      case 'stopped':
        return trans.__('Stopped');
      case 'failed':
        return trans.__('Failed');
      case 'refused':
        return trans.__('Refused');
      case 'silent':
        return machine
          ? trans.__('%1 stopped answering', machine)
          : trans.__('The machine stopped answering');
      case 'returned':
        return machine
          ? trans.__('%1 answers again', machine)
          : trans.__('The machine answers again');
      case 'note':
        return trans.__('Note');
      default:
        // A newer controller tells of things that have no words here yet.
        return foreign(String(event.kind).replaceAll('_', ' '));
    }
  }

  /** Say how far a step is; never a percentage, which would be a guess. */
  progress(progress: IProgress): string {
    const { trans } = this;
    const name = this._work(progress.step);
    const done = progress.done ?? 0;
    if (!progress.total) {
      return name;
    }
    return progress.unit === 'bytes'
      ? trans.__(
          '%1: %2 of %3',
          name,
          bytes(trans, done),
          bytes(trans, progress.total)
        )
      : trans.__('%1: %2 of %3', name, done, progress.total);
  }

  private _work(step: string): string {
    const { trans } = this;
    const known: Record<string, string> = {
      resolve_environment: trans.__('Looking for the environment'),
      create_environment: trans.__('Creating the environment'),
      build_environment: trans.__('Building the environment'),
      download_packages: trans.__('Fetching packages'),
      install_packages: trans.__('Installing packages'),
      compile_bytecode: trans.__('Compiling packages'),
      verify_environment: trans.__('Checking the environment'),
      pull_image: trans.__('Fetching the image'),
      start_server: trans.__('Starting the notebook server'),
      wait_for_server: trans.__('Waiting for the notebook server to answer')
    };
    const words = foreign(step.replaceAll('_', ' '));
    return known[step] ?? words.charAt(0).toUpperCase() + words.slice(1);
  }

  /** Say which limits are in force. */
  limits(limits: ILimits | null | undefined, now: number): ILimitLine[] {
    const { trans } = this;
    const lines: ILimitLine[] = [];
    const add = (key: string, text: string, endsAt: number | null = null) =>
      lines.push({ key, text, endsAt });
    const endsAt = instant(limits?.ends_at);
    if (endsAt !== null) {
      add('ends', this._ends(endsAt, now), endsAt);
    }
    if (limits?.metal_reserved) {
      add(
        'metal',
        trans.__('Holds the Mac’s GPU; nothing else native runs beside it')
      );
    }
    if (limits?.devices) {
      add('devices', trans._n('%1 GPU', '%1 GPUs', limits.devices));
    }
    if (limits?.cpu_milli) {
      const cores = limits.cpu_milli / 1000;
      add('cpu', trans._n('%1 core', '%1 cores', cores));
    }
    if (limits?.memory_bytes) {
      add(
        'memory',
        trans.__('%1 of memory', bytes(trans, limits.memory_bytes))
      );
    }
    return lines;
  }

  private _ends(endsAt: number, now: number): string {
    const { trans } = this;
    const left = (endsAt - now) / 1000;
    return left > 0
      ? trans.__(
          'Time limit at %1, in %2',
          this.clock(endsAt),
          roughly(trans, left)
        )
      : trans.__('Time limit since %1', this.clock(endsAt));
  }

  /** Say how an earlier start went. */
  run(run: IRun): string {
    const { trans } = this;
    const began = run.began === null ? '' : moment(run.began, this.locale);
    const admitted =
      run.admittedSeconds === null
        ? trans.__('never ready')
        : trans.__('ready in %1', duration(trans, run.admittedSeconds));
    const end = run.explanation
      ? this.why(run.explanation)
      : this.state(run.outcome);
    return [began, admitted, end].filter(Boolean).join(' · ');
  }

  /** Name a state. */
  state(state: State): string {
    const { trans } = this;
    const known: Record<State, string> = {
      requested: trans.__('asked for'),
      queued: trans.__('waiting'),
      placed: trans.__('placed'),
      preparing: trans.__('preparing'),
      starting: trans.__('starting'),
      ready: trans.__('ready'),
      stopping: trans.__('stopping'),
      unknown: trans.__('not answering'),
      stopped: trans.__('stopped'),
      failed: trans.__('failed'),
      refused: trans.__('refused')
    };
    return known[state] ?? foreign(state);
  }

  /** Say the time of day, and the day too where it is another one. */
  clock(at: number): string {
    return clock(at, this.locale);
  }

  /** Say how long ago or how far ahead something is. */
  ago(at: number, now: number): string {
    const { trans } = this;
    const seconds = (now - at) / 1000;
    return seconds >= 0
      ? trans.__('%1 ago', roughly(trans, seconds))
      : trans.__('in %1', roughly(trans, -seconds));
  }
}
