// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { canTryAgain, heard, notice } from './standing.js';
import { Ticker } from './ticker.js';
import { render } from './timeline/index.js';
import type { IAction } from './timeline/index.js';
import type { IFleetTimeline } from './tokens.js';

/** How long an answer may take before empty rows say that one is awaited. */
const SKELETON_AFTER = 300;

/** What the buttons of the panel do. */
export interface IPanelActions {
  refresh(): void;
  copyText(): void;
  copyJson(): void;
}

/** The side panel with this server's admission timeline. */
export class TimelinePanel extends Widget {
  constructor(
    private readonly _fleet: IFleetTimeline,
    private readonly _actions: IPanelActions
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
    this._loadingSince = isLoading ? (this._loadingSince ?? Date.now()) : null;
    const waited =
      this._loadingSince === null ? 0 : Date.now() - this._loadingSince;
    render(this.node, model.timeline, words, {
      now: model.now,
      notice: notice(words.trans, model),
      heard: heard(words.trans, model),
      times: preferences.values.times,
      loading: isLoading && waited >= SKELETON_AFTER,
      actions: this._buttons(isLoading)
    });
  }

  private _buttons(isLoading: boolean): IAction[] {
    const { model, words } = this._fleet;
    const { trans } = words;
    const buttons: IAction[] = [];
    if (canTryAgain(model)) {
      buttons.push({
        key: 'refresh',
        label: trans.__('Try now'),
        run: this._actions.refresh
      });
    }
    if (!isLoading) {
      buttons.push({
        key: 'text',
        label: trans.__('Copy as text'),
        run: this._actions.copyText
      });
    }
    if (model.timeline) {
      buttons.push({
        key: 'json',
        label: trans.__('Copy JSON'),
        run: this._actions.copyJson
      });
    }
    return buttons;
  }

  private readonly _ticker = new Ticker(() => this._draw(), 1_000);
  private _loadingSince: number | null = null;
}
