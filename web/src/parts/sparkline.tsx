interface Props {
  values: readonly number[];
  /** Its content for screen readers, with the figures that matter: a picture alone says nothing to them. */
  label: string;
  width?: number;
  height?: number;
}

/** A small line without axes; its top is the largest value. */
export function Sparkline({ values, label, width = 120, height = 28 }: Props) {
  const top = Math.max(...values, Number.MIN_VALUE);
  const x = (index: number) => (values.length < 2 ? 0 : (index / (values.length - 1)) * width);
  const y = (value: number) => height - 1 - (value / top) * (height - 2);
  const line = values
    .map((value, index) => `${index === 0 ? 'M' : 'L'}${x(index).toFixed(1)} ${y(value).toFixed(1)}`)
    .join('');
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      {values.length > 1 && (
        <>
          <path d={`${line}L${width} ${height}L0 ${height}Z`} fill="var(--mantine-primary-color-light)" />
          <path
            d={line}
            fill="none"
            stroke="var(--mantine-primary-color-filled)"
            strokeWidth="1.5"
            vectorEffect="non-scaling-stroke"
          />
        </>
      )}
    </svg>
  );
}
