extension Duration {
  /// The microseconds, a part of one counted as a whole one; `nil` where they are more than can be counted.
  var microsecondsRoundedUp: Int64? {
    // Of a longer one not even the seconds could be counted.
    guard self < .seconds(Int64.max / 1_000_000) else { return nil }
    let (seconds, attoseconds) = components
    return seconds * 1_000_000 + (attoseconds + 999_999_999_999) / 1_000_000_000_000
  }
}
