// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

/** What a user can choose. */
export interface IPreferences {
  times: 'relative' | 'absolute';
  statusItem: boolean;
  launcher: boolean;
  notifications: boolean;
  /** How long before the end of a time limit it is told; 0: never. */
  noticeMinutes: number;
}

const DEFAULTS: IPreferences = {
  times: 'relative',
  statusItem: true,
  launcher: false,
  notifications: true,
  noticeMinutes: 10
};

/** The user's choices, with the defaults until they are loaded. */
export class Preferences {
  /** Emitted when one of them changes. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The choices in force. */
  get values(): IPreferences {
    return this._values;
  }

  /** Follow the settings of this application. */
  async follow(registry: ISettingRegistry, plugin: string): Promise<void> {
    const settings = await registry.load(plugin);
    const take = () => {
      // The schema has checked the types.
      this._values = {
        ...DEFAULTS,
        ...(settings.composite as Partial<IPreferences>)
      };
      this._changed.emit();
    };
    settings.changed.connect(take);
    take();
  }

  private _values = DEFAULTS;
  private readonly _changed = new Signal<this, void>(this);
}
