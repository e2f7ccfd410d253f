// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILauncher } from '@jupyterlab/launcher';
import type { IDisposable } from '@lumino/disposable';

import { CommandIDs, IFleetTimeline, NAME } from '../tokens.js';

/** Adds a card to the launcher, for whoever wants it there. */
export const launcher: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:launcher`,
  description: 'Offers the admission timeline in the launcher.',
  autoStart: true,
  requires: [IFleetTimeline],
  // Notebook 7 has none.
  optional: [ILauncher],
  activate: (
    _: JupyterFrontEnd,
    { preferences }: IFleetTimeline,
    launcher: ILauncher | null
  ): void => {
    let card: IDisposable | null = null;
    const follow = () => {
      const isWanted = preferences.values.launcher;
      if (isWanted && !card) {
        card =
          launcher?.add({
            command: CommandIDs.open,
            category: 'Other',
            rank: 900
          }) ?? null;
      } else if (!isWanted) {
        card?.dispose();
        card = null;
      }
    };
    preferences.changed.connect(follow);
    follow();
  }
};
