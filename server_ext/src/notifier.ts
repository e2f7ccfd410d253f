// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { IClock } from './answer.js';
import { pageClock } from './answer.js';
import { incidents, untilNotice } from './incidents.js';
import type { IIncident } from './incidents.js';
import type { IFleetTimeline } from './tokens.js';

/** Where incidents are told. */
export interface ITeller {
  /** Tell of a new incident; returns what identifies the telling. */
  tell(incident: IIncident): string;
  /** Tell that a told incident has become another thing. */
  retell(told: string, incident: IIncident): void;
}

/** Tells of each incident once, and once more when it is over. */
export class Notifier {
  constructor(
    private readonly _fleet: IFleetTimeline,
    private readonly _teller: ITeller,
    private readonly _clock: IClock = pageClock
  ) {
    _fleet.model.changed.connect(this._look, this);
    _fleet.preferences.changed.connect(this._look, this);
    this._look();
  }

  private _look(): void {
    const { model, words, preferences } = this._fleet;
    const { notifications, noticeMinutes } = preferences.values;
    // Where there is no status bar and the panel is closed, nobody else looks.  The
    // first question is not asked from here: nothing may delay the notebooks.
    model.watch(this, notifications && model.standing !== 'loading');
    this._cancel?.();
    this._cancel = null;
    if (!notifications || !model.timeline) {
      return;
    }
    const found = incidents(model.timeline, words, model.now, noticeMinutes);
    found.forEach(incident => this._tell(incident));
    const wait = untilNotice(model.timeline, model.now, noticeMinutes);
    if (wait !== null && wait < LONGEST_TIMER) {
      this._cancel = this._clock.after(wait, () => this._look());
    }
  }

  private _tell(incident: IIncident): void {
    const told = this._told.get(incident.id);
    if (!told && !incident.isOver) {
      const telling = this._teller.tell(incident);
      this._told.set(incident.id, { telling, type: incident.type });
    } else if (told && told.type !== incident.type) {
      told.type = incident.type;
      this._teller.retell(told.telling, incident);
    }
  }

  private readonly _told = new Map<
    string,
    { telling: string; type: IIncident['type'] }
  >();
  private _cancel: (() => void) | null = null;
}

/** A browser's timers cannot be set further ahead than 24 days. */
const LONGEST_TIMER = 2 ** 31 - 1;
