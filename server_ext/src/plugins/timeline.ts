// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { localeOf } from '../locale.js';
import { TimelineModel } from '../model.js';
import { Preferences } from '../preferences.js';
import { ServerSource } from '../source.js';
import { Words } from '../timeline/index.js';
import { IFleetTimeline, NAME } from '../tokens.js';

/** Provides the timeline, and keeps it fresh while somebody looks. */
export const timeline: JupyterFrontEndPlugin<IFleetTimeline> = {
  id: `${NAME}:timeline`,
  description: 'Provides the admission timeline of this server.',
  autoStart: true,
  provides: IFleetTimeline,
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): IFleetTimeline => {
    const language = translator ?? nullTranslator;
    const model = new TimelineModel(
      new ServerSource(app.serviceManager.serverSettings)
    );
    const preferences = new Preferences();
    if (registry) {
      preferences.follow(registry, timeline.id).catch((reason: unknown) => {
        console.error('The settings of the admission timeline:', reason);
      });
    }
    followPage(model);
    // Not before: nothing here may delay the notebooks.
    void app.restored.then(() => model.start());
    return {
      model,
      preferences,
      words: new Words(
        language.load('fleet_lab'),
        localeOf(language.languageCode, navigator.languages)
      )
    };
  }
};

function followPage(model: TimelineModel): void {
  const look = () => model.setVisible(document.visibilityState === 'visible');
  document.addEventListener('visibilitychange', look);
  window.addEventListener('online', () => model.setOnline(true));
  window.addEventListener('offline', () => model.setOnline(false));
  look();
  model.setOnline(navigator.onLine);
}
