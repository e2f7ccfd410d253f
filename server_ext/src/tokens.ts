// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import { Token } from '@lumino/coreutils';

import type { TimelineModel } from './model.js';
import type { Preferences } from './preferences.js';
import type { Words } from './timeline/index.js';

/** The name of the distribution, the prefix of plugins and commands. */
export const NAME = 'jupyterhub-fleet-lab';

/** The commands that other extensions, menus and toolbars may use. */
export namespace CommandIDs {
  export const open = `${NAME}:open-timeline`;
  export const refresh = `${NAME}:ask-again`;
  export const copyText = `${NAME}:copy-text`;
  export const copyJson = `${NAME}:copy-json`;
  export const saveText = `${NAME}:download-text`;
  export const saveJson = `${NAME}:download-json`;
}

/** What the plugins of this extension share. */
export interface IFleetTimeline {
  readonly model: TimelineModel;
  readonly words: Words;
  readonly preferences: Preferences;
}

/** The admission timeline of this server. */
export const IFleetTimeline = new Token<IFleetTimeline>(
  `${NAME}:IFleetTimeline`,
  'The admission timeline of this server: what it waited for, where it runs, until when.'
);
