import Larder

/// The keys of a queue in its base.
///
/// The article "The format of StoreQueue" describes them.
struct QueueLayout: Sendable {
  static let formatVersion: UInt8 = 2

  let prefix: StoreKey

  /// The key of the record of the format and the codec.
  let formatKey: StoreKey

  /// The prefix of the items, by key.
  let itemPrefix: StoreKey

  /// The key of the record that exists while the queue is paused.
  let pauseKey: StoreKey

  /// The ranges of the ready items, of the timers of items, of all other timers, of the states of live items, and of the
  /// dead letters.
  let ready: KeyRange
  let timers: KeyRange
  let lateTimers: KeyRange
  let states: KeyRange
  let dead: KeyRange

  /// The ranges of the members of all groups, and of the records of schedules.
  let members: KeyRange
  let schedules: KeyRange

  /// The number of bytes by which a key of the base may be longer than the key of an item.
  let overhead: Int

  init(prefix: StoreKey) {
    self.prefix = prefix
    formatKey = prefix + "f"
    itemPrefix = prefix + "i"
    pauseKey = prefix + "p"
    ready = .prefix(prefix + "r")
    timers = .prefix(prefix + "t")
    lateTimers = .prefix(prefix + "u")
    states = .prefix(prefix + "s")
    dead = .prefix(prefix + "x")
    members = .prefix(prefix + "g")
    schedules = .prefix(prefix + "c")
    overhead = prefix.count + 1 + 2 + QueueLayout.sequenceLength
  }

  /// Returns the name of the codec in the record of the format.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch` if the format is another one.
  static func codecName(of record: [UInt8], during operation: StoreOperation, store: String) throws -> String {
    guard record.first == formatVersion else {
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message:
          "the queue has format version \(record.first.map { "\($0)" } ?? "0"); this version of Larder reads version "
          + "\(formatVersion)")
    }
    return String(decoding: record.dropFirst(), as: UTF8.self)
  }

  static let sequenceLength = 16

  func itemKey(_ key: StoreKey) -> StoreKey { itemPrefix + key }

  func stateKey(_ sequence: UInt128) -> StoreKey { join("s", sequence.bigEndianBytes) }

  func readyKey(_ sequence: UInt128, priority: Int8) -> StoreKey {
    join("r", [QueueLayout.code(ofPriority: priority)] + sequence.bigEndianBytes)
  }

  func timerKey(_ time: Int64, _ timer: QueueTimer) -> StoreKey {
    join(timer.letter, time.orderedBytes + timer.bytes)
  }

  func deadKey(_ sequence: UInt128) -> StoreKey { join("x", sequence.bigEndianBytes) }

  /// Returns the key of the index of dead letters by key.
  func deadIndexKey(_ key: StoreKey, _ sequence: UInt128) -> StoreKey {
    StoreKey(bytes: deadIndexPrefix(key).bytes + sequence.bigEndianBytes)
  }

  /// Returns the range of the index of dead letters for one key.
  func deadIndex(_ key: StoreKey) -> KeyRange { .prefix(deadIndexPrefix(key)) }

  private func deadIndexPrefix(_ key: StoreKey) -> StoreKey {
    join("y", [UInt8(key.count >> 8), UInt8(key.count & 0xFF)] + key.bytes)
  }

  /// Returns the key of the record of an id that is remembered after its item has left the queue.
  func rememberedKey(_ id: StoreKey) -> StoreKey { join("d", id.bytes) }

  /// Returns the key of the record of a schedule.
  func scheduleKey(_ name: StoreKey) -> StoreKey { join("c", name.bytes) }

  func groupKey(_ group: StoreKey) -> StoreKey { join("l", group.bytes) }

  func memberKey(_ group: StoreKey, _ sequence: UInt128) -> StoreKey {
    StoreKey(bytes: memberPrefix(group).bytes + sequence.bigEndianBytes)
  }

  /// Returns the range of the members of a group, in the order of arrival.
  func members(_ group: StoreKey) -> KeyRange { .prefix(memberPrefix(group)) }

  private func memberPrefix(_ group: StoreKey) -> StoreKey { join("g", [UInt8(group.count)] + group.bytes) }

  /// Returns a part of a range of timers: those that have expired at a time.
  func expired(_ timers: KeyRange, at time: Int64) -> KeyRange {
    KeyRange(from: timers.lowerBound, upTo: end(of: timers, at: time))
  }

  /// Returns a part of a range of timers: those that have not expired at a time.
  func pending(_ timers: KeyRange, at time: Int64) -> KeyRange {
    KeyRange(from: end(of: timers, at: time), upTo: timers.upperBound)
  }

  /// Returns the bound between the timers that have expired at a time and those that have not.
  ///
  /// No subject of a timer begins with 0xFF.
  private func end(of timers: KeyRange, at time: Int64) -> StoreKey {
    StoreKey(bytes: timers.lowerBound.bytes + time.orderedBytes + [UInt8.max])
  }

  // MARK: Reading keys

  /// Returns the sequence number at the end of a key.
  func sequence(of key: StoreKey) -> UInt128? {
    let bytes = key.bytes
    guard bytes.count >= prefix.count + 1 + QueueLayout.sequenceLength else { return nil }
    return UInt128(bigEndianBytes: bytes.suffix(QueueLayout.sequenceLength))
  }

  /// Returns the group and the sequence number in the key of a member, or `nil` if the key is damaged.
  func member(_ key: StoreKey) -> (group: StoreKey, sequence: UInt128)? {
    let bytes = key.bytes.dropFirst(prefix.count + 1)
    guard let length = bytes.first, length > 0, bytes.count == 1 + Int(length) + QueueLayout.sequenceLength else {
      return nil
    }
    let rest = bytes.dropFirst()
    return (StoreKey(bytes: rest.prefix(Int(length))), UInt128(bigEndianBytes: rest.dropFirst(Int(length))))
  }

  /// Returns the name of a schedule in the key of its record.
  func scheduleName(of key: StoreKey) -> StoreKey { StoreKey(bytes: key.bytes.dropFirst(prefix.count + 1)) }

  /// Returns the subject of a timer, or `nil` if the key is damaged.
  func subject(ofTimer key: StoreKey) -> QueueTimer? { QueueTimer(key.bytes.dropFirst(prefix.count + 1 + 8)) }

  /// Returns the end of a timer, or `nil` if the key is damaged.
  func time(ofTimer key: StoreKey) -> Int64? {
    guard subject(ofTimer: key) != nil else { return nil }
    return end(ofTimer: key)
  }

  private func end(ofTimer key: StoreKey) -> Int64 {
    Int64(orderedBytes: key.bytes.dropFirst(prefix.count + 1).prefix(8))
  }

  /// Returns a timer, or `nil` if its key is damaged.
  func timer(_ entry: StoreEntry<[UInt8]>) -> StoredTimer? {
    guard let subject = subject(ofTimer: entry.key) else { return nil }
    let (value, group) = (entry.value, entry.value.dropFirst(8))
    return StoredTimer(
      key: entry.key, value: value, time: end(ofTimer: entry.key),
      // Without a beginning, the timer counts as correct.
      beginning: value.count >= 8 ? max(Int64(bigEndianBytes: value[..<8]), -.max) : 0,
      group: group.isEmpty || group.count > StoreKey.maximumLength ? nil : StoreKey(bytes: group), subject: subject)
  }

  /// The ranges of keys whose changes can make an item due, now or later.
  var deliveries: [KeyRange] { [.prefix(pauseKey), ready, timers] }

  /// Returns whether a new value of a key can make an item due, now or later.
  ///
  /// A new value of the pause key makes none due; only its removal does.
  func concernsDelivery(_ key: StoreKey) -> Bool { ready.contains(key) || timers.contains(key) }

  // Higher priorities come first.
  private static func code(ofPriority priority: Int8) -> UInt8 { UInt8(bitPattern: 100 - priority) }

  private func join(_ kind: StoreKey, _ bytes: [UInt8]) -> StoreKey {
    StoreKey(bytes: prefix.bytes + kind.bytes + bytes)
  }
}

/// An entry of a timer.
struct StoredTimer: Sendable {
  let key: StoreKey
  let value: [UInt8]
  /// The end, in microseconds since 1970.
  let time: Int64
  /// The time when the timer was set, in microseconds since 1970.
  let beginning: Int64
  /// The group of the item, or `nil` for none.
  let group: StoreKey?
  let subject: QueueTimer

  /// The time from the beginning to the end, in microseconds.
  var length: Int64 { max(0, time.addingSaturating(-beginning)) }
}

/// The subject of a timer.
enum QueueTimer: Sendable, Hashable {
  /// A delayed or leased item becomes ready.
  case item(UInt128, isLeased: Bool)
  /// An id is forgotten.
  case id(StoreKey)
  /// A dead letter is removed.
  case deadLetter(UInt128)

  /// The letter of the range of keys.
  ///
  /// Items that wait to be delivered come before what is only to be removed.
  var letter: StoreKey {
    switch self {
    case .item: "t"
    case .id, .deadLetter: "u"
    }
  }

  var bytes: [UInt8] {
    switch self {
    case .item(let sequence, isLeased: false): [0] + sequence.bigEndianBytes
    case .item(let sequence, isLeased: true): [1] + sequence.bigEndianBytes
    case .id(let id): [2] + id.bytes
    case .deadLetter(let sequence): [3] + sequence.bigEndianBytes
    }
  }

  init?(_ bytes: ArraySlice<UInt8>) {
    guard let kind = bytes.first else { return nil }
    let rest = bytes.dropFirst()
    guard kind == 2 || rest.count == QueueLayout.sequenceLength else { return nil }
    switch kind {
    case 0, 1: self = .item(UInt128(bigEndianBytes: rest), isLeased: kind == 1)
    case 2: self = .id(StoreKey(bytes: rest))
    case 3: self = .deadLetter(UInt128(bigEndianBytes: rest))
    default: return nil
    }
  }
}

extension StoreKey {
  static func + (left: StoreKey, right: StoreKey) -> StoreKey {
    StoreKey(bytes: left.bytes + right.bytes)
  }
}

extension Int64 {
  /// The bytes of the number.
  ///
  /// They have its order.
  var orderedBytes: [UInt8] { (UInt64(bitPattern: self) ^ 1 << 63).bigEndianBytes }

  init(orderedBytes bytes: some Sequence<UInt8>) {
    self = Int64(bitPattern: UInt64(bigEndianBytes: bytes) ^ 1 << 63)
  }
}
