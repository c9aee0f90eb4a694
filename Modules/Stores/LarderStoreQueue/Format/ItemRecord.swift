import Larder

/// The state of a live item, without its value.
struct ItemRecord: Sendable, Hashable {
  /// The phase of an item.
  enum Phase: UInt8, Sendable, CaseIterable {
    /// The item can be received, as far as its group allows.
    case ready = 0
    /// The item can be received at ``ItemRecord/deadline``.
    case delayed = 1
    /// A consumer has the item until ``ItemRecord/deadline``.
    case leased = 2
    /// The item waits until earlier items of its group have left the queue.
    case parked = 3
  }

  let key: StoreKey
  let group: StoreKey?
  let priority: Int8
  /// A Boolean value that indicates whether the caller gave the key, so it is remembered.
  let hasCallersKey: Bool
  /// The time of arrival, in microseconds since 1970.
  let arrival: Int64

  var phase: Phase = .ready
  /// A Boolean value that indicates whether a lease of the item ended without a word of the consumer, which may have
  /// crashed.
  var isSuspect = false
  /// The number of deliveries.
  var attempts: UInt32 = 0
  /// The beginning of the delay or the lease, in microseconds since 1970; otherwise 0.
  var beginning: Int64 = 0
  /// The end of the delay or the lease, in microseconds since 1970; otherwise 0.
  var deadline: Int64 = 0
  /// A number that distinguishes a lease from all other leases; otherwise 0.
  var epoch: UInt64 = 0

  private static let headerLength = 40

  /// Reads a record, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count > ItemRecord.headerLength, bytes[0] == QueueLayout.formatVersion,
      let phase = Phase(rawValue: bytes[1]), bytes[2] <= 3,
      QueueInput<Never>.priorities.contains(Int(Int8(bitPattern: bytes[3])))
    else { return nil }
    let groupEnd = ItemRecord.headerLength + Int(bytes[39])
    guard bytes.count > groupEnd, bytes.count - groupEnd <= StoreKey.maximumLength else { return nil }
    self.phase = phase
    hasCallersKey = bytes[2] & 1 != 0
    isSuspect = bytes[2] & 2 != 0
    priority = Int8(bitPattern: bytes[3])
    attempts = UInt32(bigEndianBytes: bytes[4..<8])
    beginning = Int64(bigEndianBytes: bytes[8..<16])
    deadline = Int64(bigEndianBytes: bytes[16..<24])
    epoch = UInt64(bigEndianBytes: bytes[24..<32])
    // 56 bits last until the year 3111.
    arrival = Int64(bigEndianBytes: [0] + bytes[32..<39])
    group = bytes[39] == 0 ? nil : StoreKey(bytes: bytes[ItemRecord.headerLength..<groupEnd])
    key = StoreKey(bytes: bytes[groupEnd...])
  }

  init(key: StoreKey, group: StoreKey?, priority: Int8, hasCallersKey: Bool, arrival: Int64) {
    self.key = key
    self.group = group
    self.priority = priority
    self.hasCallersKey = hasCallersKey
    self.arrival = min(max(arrival, 0), 1 << 56 - 1)
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = [
      QueueLayout.formatVersion, phase.rawValue, (hasCallersKey ? 1 : 0) | (isSuspect ? 2 : 0),
      UInt8(bitPattern: priority),
    ]
    bytes.reserveCapacity(ItemRecord.headerLength + (group?.count ?? 0) + key.count)
    bytes += attempts.bigEndianBytes
    bytes += beginning.bigEndianBytes
    bytes += deadline.bigEndianBytes
    bytes += epoch.bigEndianBytes
    bytes += arrival.bigEndianBytes.dropFirst()
    bytes.append(UInt8(group?.count ?? 0))
    if let group { bytes += group.bytes }
    bytes += key.bytes
    return bytes
  }
}

/// The stored value of a live item: its sequence number and its payload.
struct StoredItem: Sendable {
  let sequence: UInt128
  let payload: ArraySlice<UInt8>

  /// Reads a value, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= QueueLayout.sequenceLength else { return nil }
    sequence = UInt128(bigEndianBytes: bytes.prefix(QueueLayout.sequenceLength))
    payload = bytes.dropFirst(QueueLayout.sequenceLength)
  }

  static func bytes(_ sequence: UInt128, _ payload: some Collection<UInt8>) -> [UInt8] {
    sequence.bigEndianBytes + payload
  }
}

/// A dead letter: the last state of its item, the reason, the time, and the payload.
struct DeadRecord: Sendable {
  let item: ItemRecord
  let reason: DeadLetterReason
  /// In microseconds since 1970.
  let time: Int64
  /// The time of the timer that removes the dead letter, in microseconds since 1970; 0 if there is no timer.
  let expiry: Int64
  let payload: ArraySlice<UInt8>
}

extension DeadRecord {
  /// Reads a record, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 20, bytes[0] == QueueLayout.formatVersion else { return nil }
    let end = 20 + Int(UInt16(bigEndianBytes: bytes[18..<20]))
    guard bytes.count >= end, let item = ItemRecord(Array(bytes[20..<end])) else { return nil }
    self.item = item
    reason = DeadLetterReason(rawValue: bytes[1])
    time = Int64(bigEndianBytes: bytes[2..<10])
    expiry = Int64(bigEndianBytes: bytes[10..<18])
    payload = bytes[end...]
  }

  var bytes: [UInt8] {
    let item = item.bytes
    return [QueueLayout.formatVersion, reason.rawValue] + time.bigEndianBytes + expiry.bigEndianBytes
      + UInt16(item.count).bigEndianBytes + item + payload
  }
}

/// The record of a group: which of its items is leased.
struct GroupRecord: Sendable, Equatable {
  /// The sequence number of the leased item, or `nil` if there isn't one.
  var leased: UInt128?
  /// A random number for each change, so each change is noticed by another one that was planned before.
  var nonce: UInt64
}

extension GroupRecord {
  /// Reads a record, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 24 else { return nil }
    let sequence = UInt128(bigEndianBytes: bytes[0..<16])
    leased = sequence == 0 ? nil : sequence
    nonce = UInt64(bigEndianBytes: bytes[16..<24])
  }

  var bytes: [UInt8] { (leased ?? 0).bigEndianBytes + nonce.bigEndianBytes }
}

/// The record of an id that is remembered after its item has left the queue.
struct RememberedID: Sendable, Equatable {
  /// The time when the item left the queue, in microseconds since 1970.
  let beginning: Int64
  /// The time when the id is forgotten, in microseconds since 1970.
  let expiry: Int64
  let sequence: UInt128
}

extension RememberedID {
  /// Reads a record, or returns `nil` if it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    beginning = Int64(bigEndianBytes: bytes[0..<8])
    expiry = Int64(bigEndianBytes: bytes[8..<16])
    sequence = UInt128(bigEndianBytes: bytes[16..<32])
  }

  var bytes: [UInt8] { beginning.bigEndianBytes + expiry.bigEndianBytes + sequence.bigEndianBytes }
}
