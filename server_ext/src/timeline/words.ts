// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Says a timeline: from codes and numbers to what a person reads.
 *
 * The words themselves stand in `phrases.ts`, which comes from the contracts; what only
 * a browser says is a literal inside `trans.__` here. Both are found by the tools that
 * collect texts for translators.
 */
import {
  bytes,
  clock,
  duration,
  instant,
  moment,
  roughly,
  span
} from './amounts.js';
import type {
  IExplanation,
  ILimits,
  IProgress,
  ITimeLimit,
  ITimeLimits,
  ITimeline,
  ITimelineEvent,
  State
} from './contract.js';
import { say } from './fill.js';
import type { Values } from './fill.js';
import { foreign } from './foreign.js';
import {
  EVENTS,
  HEADLINES,
  PHASE_LABELS,
  STATES,
  STATUSES,
  TEXTS,
  WORK
} from './phrases.js';
import type { Phrase } from './phrases.js';
import { capital, inside, remedy, sentence } from './reasons.js';
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
    return this._say(TEXTS.title, { server: foreign(timeline?.server) });
  }

  /** Say in one plain sentence what is now. It changes with the state alone. */
  headline(timeline: ITimeline, shown: IView): string {
    const { state } = timeline;
    if (state === 'queued') {
      return this._inLine(timeline, shown);
    }
    const phrase = HEADLINES[state] as Phrase | undefined;
    if (!phrase) {
      // A newer controller has states that have no words here yet.
      return foreign(timeline.headline);
    }
    const machine = foreign(timeline.machine);
    const why = timeline.explanation;
    return this._say(phrase, {
      machine:
        machine || (state === 'unknown' ? this._say(TEXTS.the_machine) : ''),
      took:
        shown.totalSeconds === null
          ? ''
          : duration(this.trans, shown.totalSeconds),
      why: why ? inside(this.why(why, shown.now)).replace(/\.$/, '') : ''
    });
  }

  /** Say the same where the reason stands in the row beneath: it is not repeated. */
  lead(timeline: ITimeline, shown: IView): string {
    return timeline.state === 'queued'
      ? this._inLine({ ...timeline, explanation: null }, shown, true)
      : this.headline(timeline, shown);
  }

  private _inLine(timeline: ITimeline, shown: IView, isLead = false): string {
    const ahead = timeline.position ?? null;
    const why = timeline.explanation;
    return [
      ahead === 0 ? this._say(TEXTS.you_are_next) : '',
      ahead ? this._say(TEXTS.ahead, { count: ahead }) : '',
      why ? this.why(why, shown.now) : '',
      why || (isLead && ahead !== null) ? '' : this._say(HEADLINES.queued),
      timeline.parked ? this._say(TEXTS.place_is_kept) : ''
    ]
      .filter(Boolean)
      .join(' ');
  }

  /** Say a fixed text. */
  text(phrase: Phrase): string {
    return this._say(phrase);
  }

  private _say(phrase: Phrase, values: Values = {}): string {
    return say(this.trans, phrase, values);
  }

  /** Say why, with the numbers and the holders, and until when as seen from `now`. */
  why(explanation: IExplanation, now: number): string {
    return sentence(this.trans, explanation, at => this.clock(at, now));
  }

  /** Say what happened beside the steps, and when. */
  note(event: ITimelineEvent, now: number): string {
    const at = instant(event.at);
    const why = event.explanation ? this.why(event.explanation, now) : '';
    return [at === null ? '' : this.clock(at, now), why].join(' ').trim();
  }

  /** Say what would help; empty where nothing is known to. */
  remedy(explanation: IExplanation): string {
    return remedy(this.trans, explanation);
  }

  /** Name a phase. */
  step(step: IStep, timeline: ITimeline): string {
    const machine = foreign(step.machine ?? timeline.machine);
    return this._say(PHASE_LABELS[step.phase], {
      profile: foreign(timeline.profile_title ?? timeline.profile),
      machine: (step.status !== 'todo' && machine) || this._say(TEXTS.a_machine)
    });
  }

  /** Say the status that a glyph stands for. */
  status(status: StepStatus): string {
    return this._say(STATUSES[status] as Phrase);
  }

  /** Say where the time went; empty while there is nothing to tell. */
  spent(shown: IView): string {
    const { trans } = this;
    if (shown.totalSeconds === null) {
      return '';
    }
    return this._say(TEXTS.spent, {
      total: duration(trans, shown.totalSeconds),
      waiting: duration(trans, shown.waitingSeconds)
    });
  }

  /** Say what happened. */
  event(event: ITimelineEvent): string {
    if (event.kind === 'progress' && event.progress) {
      return this.progress(event.progress);
    }
    if (event.kind === 'note' && event.explanation) {
      return this.why(event.explanation, instant(event.at) ?? 0);
    }
    const phrase = EVENTS[event.kind];
    if (!phrase) {
      // A newer controller tells of things that have no words here yet.
      return foreign(String(event.kind).replaceAll('_', ' '));
    }
    const machine = foreign(event.machine);
    const words = this._say(phrase, {
      machine: machine || this._say(TEXTS.a_machine)
    });
    return machine ? words : capital(words);
  }

  /** Say how far a step is; never a percentage, which would be a guess. */
  progress(progress: IProgress): string {
    const { trans } = this;
    const known = WORK[progress.step];
    const work = known
      ? this._say(known)
      : capital(foreign(progress.step.replaceAll('_', ' ')));
    if (!progress.total) {
      return work;
    }
    const amount = (number: number) =>
      progress.unit === 'bytes' ? bytes(trans, number) : String(number);
    return this._say(TEXTS.counted, {
      work,
      done: amount(progress.done ?? 0),
      total: amount(progress.total)
    });
  }

  /** Say which limits are in force. */
  limits(limits: ILimits | null | undefined, now: number): ILimitLine[] {
    const { trans } = this;
    const lines: ILimitLine[] = [];
    const add = (key: string, text: string, endsAt: number | null = null) =>
      lines.push({ key, text, endsAt });
    const startsBy = instant(limits?.starts_by);
    if (startsBy !== null) {
      add(
        'starts',
        this._say(TEXTS.starts_by, { time: this.clock(startsBy, now) })
      );
    }
    const likely = limits?.likely;
    const early = instant(likely?.early);
    const late = instant(likely?.late);
    if (likely && early !== null && late !== null && now <= late) {
      add(
        'likely',
        this._say(TEXTS.likely_start, {
          early: this.clock(early, now),
          late: this.clock(late, now),
          count: likely.samples
        })
      );
    }
    if (limits?.longer_than_usual || (late !== null && now > late)) {
      add('longer', this._say(TEXTS.longer_than_usual));
    }
    const endsAt = instant(limits?.ends_at);
    if (endsAt !== null) {
      add('ends', this._ends(endsAt, now), endsAt);
    }
    const idle = instant(limits?.idle_ends);
    if (idle !== null) {
      const time = this.clock(idle, now);
      add('idle', this._say(TEXTS.idle_ends, { time }), idle);
    }
    const ends = this.endsAfter(limits?.time_limits);
    if (ends) {
      add('time', ends);
    }
    if (limits?.metal_reserved) {
      add('metal', this._say(TEXTS.metal));
    }
    if (limits?.devices) {
      add('devices', trans._n('%1 GPU', '%1 GPUs', limits.devices));
    }
    if (limits?.cpu_milli) {
      const cores = limits.cpu_milli / 1000;
      add('cpu', trans._n('%1 core', '%1 cores', cores));
    }
    if (limits?.memory_bytes) {
      const amount = bytes(trans, limits.memory_bytes);
      add('memory', this._say(TEXTS.memory, { amount }));
    }
    return lines;
  }

  /**
   * Say when a server ends by itself, and what set that; empty: it does not.
   *
   * An entry that set both is named once, at the end.
   */
  endsAfter(limits: ITimeLimits | null | undefined): string {
    const { limit, idle_limit: idle } = limits ?? {};
    if (!limit && !idle) {
      return '';
    }
    const time = (it: ITimeLimit | null | undefined) =>
      it ? span(this.trans, it.seconds) : '';
    const by = this._setBy(limit);
    const whose = this._setBy(idle);
    return this._say(limit ? TEXTS.ends_after : TEXTS.ends_idle, {
      limit: time(limit),
      idle: time(idle),
      by: by === whose ? '' : by,
      // Behind one of which nobody knows it would speak of both.
      whose: limit && !by ? '' : whose
    });
  }

  private _setBy(limit: ITimeLimit | null | undefined): string {
    switch (limit?.set_by) {
      case 'class':
        return this._say(TEXTS.set_by_class);
      case 'profile':
        return this._say(TEXTS.set_by_profile);
      default:
        return '';
    }
  }

  private _ends(endsAt: number, now: number): string {
    const { trans } = this;
    const left = (endsAt - now) / 1000;
    return this._say(left > 0 ? TEXTS.ends : TEXTS.ended, {
      time: this.clock(endsAt, now),
      left: roughly(trans, left)
    });
  }

  /** Say how an earlier start went. */
  run(run: IRun, now: number): string {
    const began = run.began === null ? '' : moment(run.began, this.locale);
    const admitted =
      run.admittedSeconds === null
        ? this._say(TEXTS.never_ready)
        : this._say(TEXTS.ready_in, {
            took: duration(this.trans, run.admittedSeconds)
          });
    const end = run.explanation
      ? this.why(run.explanation, now)
      : this.state(run.outcome);
    return [began, admitted, end].filter(Boolean).join(' · ');
  }

  /** Name a state. */
  state(state: State): string {
    const phrase = STATES[state] as Phrase | undefined;
    return phrase ? this._say(phrase) : foreign(state);
  }

  /** Say the time of day, and the day too where it is another one. */
  clock(at: number, now: number): string {
    return clock(at, now, this.locale);
  }

  /** Say one thing and, in brackets, the same otherwise. */
  both(what: string, detail: string): string {
    return this._say(TEXTS.with_detail, { what, detail });
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
