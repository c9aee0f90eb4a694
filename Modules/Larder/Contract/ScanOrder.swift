/// The direction in which a scan goes through the keys.
public enum ScanOrder: Sendable, Hashable, CaseIterable {
  /// From the lowest key to the highest.
  case ascending
  /// From the highest key to the lowest.
  case descending
}
