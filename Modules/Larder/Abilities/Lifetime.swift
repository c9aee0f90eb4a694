/// How long an entry lives, or has still to live.
public enum Lifetime: Sendable, Hashable {
  /// It does not expire.
  case unlimited

  /// It expires after this time, which is more than zero.
  case limited(Duration)
}
