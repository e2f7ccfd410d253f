// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { Message } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { status } from './status.js';
import { Ticker } from './ticker.js';
import { setAttribute, setText } from './timeline/patch.js';
import type { IFleetTimeline } from './tokens.js';

/** The item of the status bar: a button that opens the panel. */
export class StatusItem extends Widget {
  constructor(
    private readonly _fleet: IFleetTimeline,
    open: () => void
  ) {
    super();
    this.addClass('jp-FleetStatus');
    this._button = document.createElement('button');
    this._button.type = 'button';
    this._button.className = 'jp-FleetStatus-button';
    this._button.onclick = open;
    this.node.append(this._button);
    const { model, preferences } = _fleet;
    model.changed.connect(this.update, this);
    preferences.changed.connect(this.update, this);
  }

  /** Whether there is anything to show. */
  get isActive(): boolean {
    return this._isActive;
  }

  /** Emitted when that changes. */
  get activeChanged(): ISignal<this, void> {
    return this._activeChanged;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._ticker.start();
  }

  protected override onBeforeDetach(message: Message): void {
    this._ticker.stop();
    this._fleet.model.watch(this, false);
    super.onBeforeDetach(message);
  }

  protected override onUpdateRequest(message: Message): void {
    super.onUpdateRequest(message);
    this._draw();
  }

  private _draw(): void {
    const { model, words, preferences } = this._fleet;
    const { statusItem, noticeMinutes } = preferences.values;
    const shown = status(model, words, model.now, noticeMinutes);
    setText(this._button, shown.text);
    setAttribute(this._button, 'title', shown.hint);
    this._activate(statusItem && shown.text !== '');
  }

  private _activate(isActive: boolean): void {
    this._fleet.model.watch(this, isActive);
    if (this._isActive !== isActive) {
      this._isActive = isActive;
      this._activeChanged.emit();
    }
  }

  private readonly _button: HTMLButtonElement;
  private readonly _activeChanged = new Signal<this, void>(this);
  private readonly _ticker = new Ticker(() => this._draw(), 5_000);
  private _isActive = false;
}
