#if Metrics
/// What was measured of one kind of operation.
///
/// Times are from the call to its return, failed calls included; percentiles are right to three digits.
public struct OperationReport: Sendable, Hashable {
  /// The operation's name, or the one that was given to a block.
  public let name: String

  /// How many were counted, failed ones included.
  public let count: Int

  /// How many failed, by the code of the `StoreError`; `other` for any other error.
  ///
  /// A `CancellationError`, and what the body of an update throws, is no failure.
  public let errors: [String: Int]

  /// How many have begun and not ended.
  public let inFlight: Int

  /// The mean time.
  public let mean: Duration

  /// The time that half of them kept to.
  public let median: Duration

  /// The time that 90 of 100 kept to.
  public let percentile90: Duration

  /// The time that 95 of 100 kept to.
  public let percentile95: Duration

  /// The time that 99 of 100 kept to.
  public let percentile99: Duration

  /// The longest time.
  public let longest: Duration

  /// The bytes of the values that were read or written, or `nil` where they are not counted.
  public let bytes: Int?

  /// How many failed.
  public var errorCount: Int { errors.values.reduce(0, +) }
}

extension OperationReport: Encodable {
  private enum CodingKeys: String, CodingKey {
    case name, count, errors, inFlight
    case meanNanoseconds, p50Nanoseconds, p90Nanoseconds, p95Nanoseconds, p99Nanoseconds, maxNanoseconds, bytes
  }

  /// Writes times as whole nanoseconds.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(count, forKey: .count)
    try container.encode(errors, forKey: .errors)
    try container.encode(inFlight, forKey: .inFlight)
    try container.encode(mean.wholeNanoseconds, forKey: .meanNanoseconds)
    try container.encode(median.wholeNanoseconds, forKey: .p50Nanoseconds)
    try container.encode(percentile90.wholeNanoseconds, forKey: .p90Nanoseconds)
    try container.encode(percentile95.wholeNanoseconds, forKey: .p95Nanoseconds)
    try container.encode(percentile99.wholeNanoseconds, forKey: .p99Nanoseconds)
    try container.encode(longest.wholeNanoseconds, forKey: .maxNanoseconds)
    try container.encodeIfPresent(bytes, forKey: .bytes)
  }
}
#endif
