import Larder

/// The rules of a queue, in the units of its records.
struct QueueRules: Sendable {
  var maximumDeliveries: UInt32?
  /// In microseconds.
  var duplicateWindow: Int64
  /// In microseconds.
  var deadLetterRetention: Int64?

  /// Returns whether an item has reached the maximum number of deliveries.
  func isExhausted(_ item: ItemRecord) -> Bool {
    maximumDeliveries.map { item.attempts >= $0 } ?? false
  }

  /// Returns whether an item that cannot be decoded becomes a dead letter.
  func isUndecodable(_ item: ItemRecord) -> Bool {
    item.attempts >= maximumDeliveries ?? UInt32(FailedDelivery.decodingLimit)
  }
}

extension ItemRecord {
  /// Returns whether a receipt belongs to the running lease of the item.
  func isLeased(by receipt: DeliveryReceipt, at now: Int64) -> Bool {
    phase == .leased && attempts == receipt.attempt && epoch == receipt.epoch && deadline > now
  }

  /// A Boolean value that indicates whether the item may have crashed a process, so it is received alone.
  var mustBeReceivedAlone: Bool { isSuspect && attempts >= 2 }

  /// Changes the phase to ready, or to delayed.
  ///
  /// - Parameters:
  ///   - delay: The delay, in microseconds.
  ///   - now: The time, in microseconds since 1970.
  mutating func wait(_ delay: Int64, from now: Int64) {
    phase = delay > 0 ? .delayed : .ready
    beginning = delay > 0 ? now : 0
    deadline = delay > 0 ? now.addingSaturating(delay) : 0
    epoch = 0
  }

  /// Returns the item after a release by its consumer.
  ///
  /// - Parameters:
  ///   - delay: The delay until the item can be received again, in microseconds.
  ///   - counts: A Boolean value that indicates whether the delivery counts.
  ///   - now: The time, in microseconds since 1970.
  func released(after delay: Int64, counts: Bool, at now: Int64) -> ItemRecord {
    var item = self
    // An item that was given back unprocessed can still crash its next consumer.
    if counts { item.isSuspect = false }
    if !counts, item.attempts > 0 { item.attempts -= 1 }
    item.wait(delay, from: now)
    return item
  }

  /// The item after the end of its delay or its lease.
  var due: ItemRecord {
    var item = self
    if phase == .leased { item.isSuspect = true }
    item.wait(0, from: 0)
    return item
  }

  /// The item with a new value: as if it had never been delivered, but still delayed if it was.
  var replaced: ItemRecord {
    var item = self
    item.attempts = 0
    item.isSuspect = false
    if phase == .leased { item.wait(0, from: 0) }
    return item
  }
}

/// The random numbers of one object: they tell its items, its leases and its changes of groups from those of others.
final class QueueRandomness: Sendable {
  private let generator: Locked<any RandomNumberGenerator & Sendable>

  init(_ generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()) {
    self.generator = Locked(generator)
  }

  func next() -> UInt64 { generator.withLock { $0.next() } }
}

/// A generator of sequence numbers that sort by the time of arrival.
///
/// The upper half of a number is the time in microseconds since 1970. It increases with each number. The lower half is
/// random for each generator, so those of several processes never give the same number.
struct SequenceGenerator: Sendable {
  private var last: UInt64 = 0
  private let origin: UInt64

  init(origin: UInt64) {
    self.origin = origin
  }

  /// Returns the next number.
  ///
  /// - Parameter now: The time, in microseconds since 1970.
  mutating func next(at now: Int64) -> UInt128 {
    last = max(last + 1, UInt64(max(now, 0)))
    return UInt128(last) << 64 | UInt128(origin)
  }

  /// Continues after a number, so the order of arrival holds if the clock was set back.
  ///
  /// - Parameter sequence: A number of any generator.
  mutating func advance(past sequence: UInt128) {
    // A clock that is far ahead must not use up the numbers.
    last = min(max(last, UInt64(sequence >> 64)), UInt64.max / 2)
  }
}

extension UInt128 {
  /// The key of an item that was enqueued without an id: 32 hexadecimal digits, in the order of arrival.
  var generatedKey: StoreKey {
    StoreKey(bytes: Hexadecimal.digits(of: bigEndianBytes))
  }
}
