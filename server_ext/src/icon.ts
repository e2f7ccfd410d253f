// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import { LabIcon } from '@jupyterlab/ui-components';

/** A line of steps, the middle one under way. */
export const timelineIcon = new LabIcon({
  name: 'jupyterhub-fleet-lab:timeline',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
  <g class="jp-icon3 jp-icon-selectable" fill="#616161">
    <path d="M3.4 4.5h1.2v7H3.4z"/>
    <circle cx="4" cy="3" r="2"/><circle cx="4" cy="8" r="2"/><circle cx="4" cy="13" r="2"/>
    <path d="M8 2.3h6v1.4H8zM8 7.3h4v1.4H8zM8 12.3h5v1.4H8z"/>
  </g>
</svg>`
});
