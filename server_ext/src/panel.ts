// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { Patience, SKELETON_AFTER } from './patience.js';
import { canTryAgain, heard, notice } from './standing.js';
import { Ticker } from './ticker.js';
import { render } from './timeline/index.js';
import type { IAction } from './timeline/index.js';
import type { CommandIDs, IFleetTimeline } from './tokens.js';

/** What the buttons of the panel do, each with the command of that name. */
export type PanelAction = Exclude<keyof typeof CommandIDs, 'open'>;

/** The side panel with this server's admission timeline. */
export class TimelinePanel extends Widget {
  constructor(
    private readonly _fleet: IFleetTimeline,
    private readonly _run: (action: PanelAction) => void
  ) {
    super();
    this.addClass('jp-FleetPanel');
    const { model, preferences } = _fleet;
    model.changed.connect(this.update, this);
    preferences.changed.connect(this.update, this);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._fleet.model.watch(this, true);
    // Draws at once, so that the panel never opens with an old second in it.
    this._ticker.start();
    setTimeout(() => this.update(), SKELETON_AFTER);
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this._fleet.model.watch(this, false);
    this._ticker.stop();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.tabIndex = -1;
    this.node.focus();
  }

  protected override onUpdateRequest(message: Message): void {
    super.onUpdateRequest(message);
    if (this.isVisible) {
      this._draw();
    }
  }

  override dispose(): void {
    this._ticker.stop();
    this._fleet.model.watch(this, false);
    super.dispose();
  }

  private _draw(): void {
    const { model, words, preferences } = this._fleet;
    const isLoading = model.standing === 'loading';
    render(this.node, model.timeline, words, {
      now: model.now,
      notice: notice(words.trans, model),
      heard: heard(words.trans, model),
      times: preferences.values.times,
      loading: this._patience.isOver(isLoading, Date.now()),
      actions: this._buttons(isLoading)
    });
  }

  private _buttons(isLoading: boolean): IAction[] {
    const { model, words } = this._fleet;
    const { trans } = words;
    const buttons: IAction[] = [];
    const add = (key: PanelAction, label: string) =>
      buttons.push({ key, label, run: () => this._run(key) });
    if (canTryAgain(model)) {
      add('refresh', trans.__('Try now'));
    }
    if (!isLoading) {
      add('copyText', trans.__('Copy as text'));
    }
    if (model.timeline) {
      add('copyJson', trans.__('Copy JSON'));
    }
    if (!isLoading) {
      add('saveText', trans.__('Download text'));
    }
    if (model.timeline) {
      add('saveJson', trans.__('Download JSON'));
    }
    return buttons;
  }

  private readonly _ticker = new Ticker(() => this._draw(), 1_000);
  private readonly _patience = new Patience();
}
