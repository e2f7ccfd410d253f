import './timeline.css';
import './panel.css';
