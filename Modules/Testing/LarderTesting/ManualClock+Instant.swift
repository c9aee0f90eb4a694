extension ManualClock {
  /// A time that a ``ManualClock`` can show.
  public struct Instant: InstantProtocol {
    /// How far it is from the zero of the clock's time.
    public let offset: Duration

    /// Makes an instant.
    ///
    /// - Parameter offset: How far it is from the zero of the clock's time; nothing unless given.
    public init(offset: Duration = .zero) {
      self.offset = offset
    }

    /// The instant so much later.
    public func advanced(by duration: Duration) -> Instant {
      Instant(offset: offset + duration)
    }

    /// How much later another instant is.
    public func duration(to other: Instant) -> Duration {
      other.offset - offset
    }

    /// Whether one instant is before another.
    public static func < (left: Instant, right: Instant) -> Bool {
      left.offset < right.offset
    }
  }
}
