import Larder

/// Records as bytes; `Docs/QueueStore.md` describes them byte by byte.
extension QueueRecord {
  private enum Kind: UInt8 {
    case put = 1
    case lease, wait, remove, acknowledge, die, revive, remember
  }

  /// No sequence number beyond it is believed: a queue would have to count for centuries.
  private static let greatestSequence = UInt64.max >> 1

  /// What the flags of an item say beside its phase.
  private static let callersKeyFlag: UInt8 = 1 << 2

  /// The bytes between the beginning of a record of an item and the checksum of its payload.
  ///
  /// - Parameters:
  ///   - keyLength: The bytes of its key.
  ///   - phase: Its phase.
  static func payloadOffset(keyLength: Int, phase: QueueItem.Phase) -> Int {
    // Kind, flags, attempts, sequence, arrival; what the phase adds; the key and its length; the length of the payload.
    let phaseLength: Int =
      switch phase {
      case .waiting: 0
      case .delayed: 16
      case .leased: 24
      case .dead: 9
      }
    return 1 + 1 + 4 + 8 + 8 + phaseLength + 2 + keyLength + 4
  }

  /// Appends the record.
  ///
  /// - Parameters:
  ///   - bytes: Gets it.
  ///   - payload: The payload, where the record is an item.
  ///   - checksum: The checksum of the payload, where it is known, and stays as it is.
  func append(to bytes: inout [UInt8], payload: some Collection<UInt8> = [UInt8](), checksum: UInt32? = nil) {
    switch self {
    case .put(let state):
      let item = state.item
      bytes.append(Kind.put.rawValue)
      bytes.append(item.phase.rawValue | (item.hasCallersKey ? QueueRecord.callersKeyFlag : 0))
      bytes.append(littleEndian: item.attempts)
      bytes.append(littleEndian: item.sequence)
      bytes.append(littleEndian: item.arrival)
      switch item.phase {
      case .waiting: break
      case .delayed, .leased:
        let timer = state.timer ?? ItemTimer(deadline: 0, length: 0)
        bytes.append(littleEndian: timer.deadline)
        bytes.append(littleEndian: timer.length)
        if item.phase == .leased { bytes.append(littleEndian: timer.epoch) }
      case .dead:
        let death = state.death ?? Death(reason: .undecodable, time: 0)
        bytes.append(death.reason.rawValue)
        bytes.append(littleEndian: death.time)
      }
      bytes.append(key: item.key)
      bytes.append(littleEndian: UInt32(payload.count))
      bytes.append(littleEndian: checksum ?? CRC32C.checksum(of: payload))
      bytes.append(contentsOf: payload)
    case .lease(let sequence, let attempts, let timer):
      bytes.append(Kind.lease.rawValue)
      bytes.append(littleEndian: sequence)
      bytes.append(littleEndian: attempts)
      bytes.append(littleEndian: timer.deadline)
      bytes.append(littleEndian: timer.length)
      bytes.append(littleEndian: timer.epoch)
    case .wait(let sequence, let timer):
      bytes.append(Kind.wait.rawValue)
      bytes.append(littleEndian: sequence)
      bytes.append(littleEndian: timer?.deadline ?? 0)
      bytes.append(littleEndian: timer?.length ?? 0)
    case .remove(let sequence):
      bytes.append(Kind.remove.rawValue)
      bytes.append(littleEndian: sequence)
    case .acknowledge(let sequence, let key, let deadline):
      bytes.append(Kind.acknowledge.rawValue)
      bytes.append(littleEndian: sequence)
      bytes.append(littleEndian: deadline)
      bytes.append(key: key)
    case .die(let sequence, let death):
      bytes.append(Kind.die.rawValue)
      bytes.append(littleEndian: sequence)
      bytes.append(death.reason.rawValue)
      bytes.append(littleEndian: death.time)
    case .revive(let sequence, let newSequence, let arrival):
      bytes.append(Kind.revive.rawValue)
      bytes.append(littleEndian: sequence)
      bytes.append(littleEndian: newSequence)
      bytes.append(littleEndian: arrival)
    case .remember(let key, let sequence, let deadline):
      bytes.append(Kind.remember.rawValue)
      bytes.append(littleEndian: sequence)
      bytes.append(littleEndian: deadline)
      bytes.append(key: key)
    }
  }

  /// Reads the records of a frame.
  ///
  /// - Parameters:
  ///   - body: The frame without its head.
  ///   - segment: The segment in which it stands.
  ///   - offset: Where in that file the body begins.
  /// - Returns: The records, or `nil` where the bytes are no records.
  static func records(of body: ArraySlice<UInt8>, segment: UInt32, offset: Int64) -> [QueueRecord]? {
    var reader = ByteReader(body)
    var records: [QueueRecord] = []
    while !reader.isAtEnd {
      guard let kind = reader.read(UInt8.self).flatMap(Kind.init(rawValue:)) else { return nil }
      let fileOffset = { (position: Int) in UInt32(exactly: offset + Int64(position - body.startIndex)) }
      guard let record = record(kind, from: &reader, segment: segment, fileOffset: fileOffset) else { return nil }
      records.append(record)
    }
    return records
  }

  private static func record(
    _ kind: Kind, from reader: inout ByteReader, segment: UInt32, fileOffset: (Int) -> UInt32?
  ) -> QueueRecord? {
    if kind == .put { return item(from: &reader, segment: segment, fileOffset: fileOffset).map { .put($0) } }
    guard let sequence = readSequence(&reader) else { return nil }
    switch kind {
    case .put:
      return nil
    case .lease:
      guard let attempts = reader.read(UInt32.self), let deadline = reader.read(Int64.self),
        let length = reader.read(Int64.self), let epoch = reader.read(UInt64.self), length >= 0
      else { return nil }
      return .lease(
        sequence: sequence, attempts: attempts, ItemTimer(deadline: deadline, length: length, epoch: epoch))
    case .wait:
      guard let deadline = reader.read(Int64.self), let length = reader.read(Int64.self), length >= 0 else {
        return nil
      }
      return .wait(sequence: sequence, length > 0 ? ItemTimer(deadline: deadline, length: length) : nil)
    case .remove:
      return .remove(sequence: sequence)
    case .acknowledge:
      guard let deadline = reader.read(Int64.self), let key = reader.readKey() else { return nil }
      return .acknowledge(sequence: sequence, key: key, deadline: deadline)
    case .die:
      guard let death = readDeath(&reader) else { return nil }
      return .die(sequence: sequence, death)
    case .revive:
      guard let newSequence = readSequence(&reader), let arrival = reader.read(Int64.self) else { return nil }
      return .revive(sequence: sequence, newSequence: newSequence, arrival: arrival)
    case .remember:
      guard let deadline = reader.read(Int64.self), let key = reader.readKey() else { return nil }
      return .remember(key: key, sequence: sequence, deadline: deadline)
    }
  }

  private static func item(
    from reader: inout ByteReader, segment: UInt32, fileOffset: (Int) -> UInt32?
  ) -> ItemState? {
    guard let flags = reader.read(UInt8.self), let phase = QueueItem.Phase(rawValue: flags & 3),
      flags & ~3 & ~callersKeyFlag == 0, let attempts = reader.read(UInt32.self),
      let sequence = readSequence(&reader), let arrival = reader.read(Int64.self)
    else { return nil }
    var timer: ItemTimer?
    var death: Death?
    switch phase {
    case .waiting: break
    case .delayed, .leased:
      guard let deadline = reader.read(Int64.self), let length = reader.read(Int64.self), length >= 0 else {
        return nil
      }
      guard let epoch = phase == .leased ? reader.read(UInt64.self) : 0 else { return nil }
      timer = ItemTimer(deadline: deadline, length: length, epoch: epoch)
    case .dead:
      death = readDeath(&reader)
      guard death != nil else { return nil }
    }
    guard let key = reader.readKey(), let length = reader.read(UInt32.self), let offset = fileOffset(reader.position),
      reader.read(UInt32.self) != nil, reader.read(count: Int(length)) != nil
    else { return nil }
    var item = QueueItem(
      sequence: sequence, key: key, arrival: arrival,
      place: QueuePlace(segment: segment, offset: offset, length: length),
      hasCallersKey: flags & callersKeyFlag != 0)
    item.attempts = attempts
    item.phase = phase
    return ItemState(item: item, timer: timer, death: death)
  }

  private static func readSequence(_ reader: inout ByteReader) -> UInt64? {
    guard let sequence = reader.read(UInt64.self), sequence > 0, sequence <= greatestSequence else { return nil }
    return sequence
  }

  private static func readDeath(_ reader: inout ByteReader) -> Death? {
    guard let reason = reader.read(UInt8.self), let time = reader.read(Int64.self) else { return nil }
    return Death(reason: DeathReason(rawValue: reason), time: time)
  }
}
