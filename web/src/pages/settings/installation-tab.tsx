import { Installation } from '../installation.tsx';

export default function InstallationTab() {
  return <Installation />;
}
