/// The rules of a ``StoreLimiter``.
///
/// Each object applies its own rules, so all objects with the same key must be given the same. While two versions of a
/// program run with different rules, the less strict ones hold.
///
/// ```swift
/// let limiter = try StoreLimiter(
///   bytes, key: "limits/mail",
///   configuration: LimiterConfiguration(concurrency: 5, rate: RateLimit(100, per: .seconds(60), burst: 10)))
///
/// try await limiter.withPermit {
///   try await send(message)
/// }
/// ```
public struct LimiterConfiguration: Sendable, Hashable {
  /// The maximum number of permits at the same time, or `nil` for no limit.
  public var concurrency: Int?

  /// The limit on the number of starts in a time, or `nil`.
  public var rate: RateLimit?

  /// The time after which a permit ends that is neither renewed nor released, because its process has crashed.
  public var lease: Duration

  /// The time between two looks of an object that waits for a permit of another object.
  public var pollInterval: Duration

  /// Creates a configuration.
  ///
  /// ```swift
  /// let configuration = LimiterConfiguration(concurrency: 5, rate: RateLimit(100, per: .seconds(60), burst: 10))
  /// ```
  ///
  /// - Parameters:
  ///   - concurrency: The maximum number of permits at the same time, from 1 to 1,000, or `nil` for no limit. Defaults
  ///     to `nil`.
  ///   - rate: The limit on the number of starts in a time. Defaults to `nil`.
  ///   - lease: The time after which a permit ends that is neither renewed nor released, from 1 millisecond to 30
  ///     years. Defaults to 30 seconds. It has no meaning without a limit on the number of permits.
  ///   - pollInterval: The time between two looks of an object that waits for a permit of another object, from 1
  ///     millisecond to 30 years. Defaults to 1 second.
  public init(
    concurrency: Int? = nil, rate: RateLimit? = nil, lease: Duration = .seconds(30),
    pollInterval: Duration = .seconds(1)
  ) {
    self.concurrency = concurrency
    self.rate = rate
    self.lease = lease
    self.pollInterval = pollInterval
  }

  /// The maximum number of permits, with which the record of a limiter stays small.
  static let concurrencies = 1...1000

  /// The valid durations, which can be added to any time.
  private static let durations = Duration.milliseconds(1)...Duration.seconds(30 * 366 * 86_400)

  /// The reason why the configuration is invalid, for an error message, or `nil` if it is valid.
  public var problem: String? {
    if let concurrency, !Self.concurrencies.contains(concurrency) {
      return "the number of permits must be between 1 and 1,000, not \(concurrency)"
    }
    if let problem = rate?.problem { return problem }
    if !Self.durations.contains(lease) {
      return "the lease of a permit must be between 1 millisecond and 30 years, not \(lease)"
    }
    if !Self.durations.contains(pollInterval) {
      return "`pollInterval` must be between 1 millisecond and 30 years, not \(pollInterval)"
    }
    return nil
  }
}
