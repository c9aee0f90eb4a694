import Larder
import LarderFiles

/// A change to a queue, as stored in the log.
///
/// Only records change a ``QueueLedger``.
///
/// A record about a missing item changes nothing. The segment of such an item was removed after the item was gone.
enum QueueRecord: Sendable, Hashable {
  /// An item is added, or rewritten with its complete state.
  case put(ItemState)
  /// The phase of an item changes: it was leased or released, or became a dead letter.
  ///
  /// `attempts` is `nil` if the number stays as it is.
  case state(sequence: UInt64, attempts: UInt32?, Standing)
  /// All items with sequence numbers in a range are removed.
  case remove(ClosedRange<UInt64>)
  /// An item is removed, and its key is remembered.
  case acknowledge(sequence: UInt64, key: StoreKey, deadline: Int64)
  /// A dead letter returns to the end of the queue.
  case requeue(sequence: UInt64, newSequence: UInt64, arrival: Int64)
  /// A key is remembered. The record is rewritten before the segment that contained it is removed.
  case remember(key: StoreKey, sequence: UInt64, deadline: Int64)
  /// The older segments that are still needed, with their ends. Each segment begins with this record, which changes no
  /// ledger.
  case segments([SegmentEnd])
}

/// A segment with its valid size in bytes.
struct SegmentEnd: Sendable, Hashable {
  var number: UInt32
  var size: Int64
}

/// Encoding and decoding records, which the article `QueueFormat` describes byte by byte.
extension QueueRecord {
  private enum Kind: UInt8 {
    case put = 1
    case state, remove, acknowledge, requeue, remember, segments
  }

  /// The approximate size of a record that remembers an id, in bytes, not counting the id.
  static let idOverhead = 16

  /// The greatest valid sequence number.
  ///
  /// A queue would take centuries to reach it.
  static let greatestSequence = UInt64.max >> 2

  /// The maximum length of the name of a group, in bytes.
  static let maximumGroupLength = 255

  /// The number of bytes between the beginning of an item's record and the checksum of its payload, which hold its kind
  /// and a length.
  static let payloadOffset = 1 + 4

  /// The flags of an item, in addition to its phase.
  private static let callersKeyFlag: UInt8 = 1 << 2
  private static let generatedKeyFlag: UInt8 = 1 << 3

  /// Appends the record.
  ///
  /// - Parameters:
  ///   - bytes: The buffer to append to.
  ///   - payload: The payload, if the record is an item.
  ///   - checksum: The checksum of the payload, if it is known and must be preserved. Defaults to `nil`.
  ///   - clockOffset: The difference added to times, in microseconds. Defaults to 0.
  func append(
    to bytes: inout [UInt8], payload: some Collection<UInt8> = [UInt8](), checksum: UInt32? = nil,
    clockOffset: Int64 = 0
  ) {
    func append(time: Int64) { bytes.append(littleEndian: time.addingSaturating(clockOffset)) }
    func append(_ standing: Standing) {
      switch standing {
      case .waiting: break
      case .delayed(let timer), .leased(let timer):
        append(time: timer.deadline)
        bytes.append(variable: UInt64(max(timer.length, 0)))
        if case .leased = standing { bytes.append(littleEndian: timer.epoch) }
      case .dead(let cause):
        bytes.append(cause.reason.rawValue)
        append(time: cause.time)
      }
    }
    switch self {
    case .put(let state):
      let item = state.item
      bytes.append(Kind.put.rawValue)
      bytes.append(littleEndian: UInt32(clamping: payload.count))
      bytes.append(littleEndian: checksum ?? CRC32C.checksum(of: payload))
      bytes.append(contentsOf: payload)
      let omitsKey = item.key == QueueLedger.generatedKey(of: item.sequence)
      bytes.append(
        item.phase.rawValue | (item.hasCallersKey ? QueueRecord.callersKeyFlag : 0)
          | (omitsKey ? QueueRecord.generatedKeyFlag : 0))
      // Reserved: a priority, and the length of the name of a group.
      bytes.append(0)
      bytes.append(variable: 0)
      bytes.append(variable: item.sequence)
      bytes.append(variable: UInt64(item.attempts))
      append(time: item.arrival)
      append(state.standing)
      if !omitsKey { bytes.append(key: item.key) }
    case .state(let sequence, let attempts, let standing):
      bytes.append(Kind.state.rawValue)
      bytes.append(standing.phase.rawValue)
      bytes.append(variable: sequence)
      // 0 stands for attempts that stay as they are.
      bytes.append(variable: attempts.map { UInt64($0) + 1 } ?? 0)
      append(standing)
    case .remove(let sequences):
      bytes.append(Kind.remove.rawValue)
      bytes.append(variable: sequences.lowerBound)
      bytes.append(variable: sequences.upperBound - sequences.lowerBound)
    case .acknowledge(let sequence, let key, let deadline):
      bytes.append(Kind.acknowledge.rawValue)
      bytes.append(variable: sequence)
      append(time: deadline)
      bytes.append(key: key)
    case .requeue(let sequence, let newSequence, let arrival):
      bytes.append(Kind.requeue.rawValue)
      bytes.append(variable: sequence)
      bytes.append(variable: newSequence)
      append(time: arrival)
    case .remember(let key, let sequence, let deadline):
      bytes.append(Kind.remember.rawValue)
      bytes.append(variable: sequence)
      append(time: deadline)
      bytes.append(key: key)
    case .segments(let segments):
      bytes.append(Kind.segments.rawValue)
      bytes.append(variable: UInt64(segments.count))
      for segment in segments {
        bytes.append(variable: UInt64(segment.number))
        bytes.append(variable: UInt64(max(segment.size, 0)))
      }
    }
  }

  /// Reads the records of a frame.
  ///
  /// - Parameters:
  ///   - body: The frame without its header.
  ///   - segment: The number of the segment.
  ///   - offset: The offset of the body in the segment.
  /// - Returns: The records, or `nil` if the bytes are not valid records.
  static func records(
    of body: ArraySlice<UInt8>, segment: UInt32, offset: Int64
  ) -> [QueueRecord]? {
    var reader = ByteReader(body)
    var records: [QueueRecord] = []
    while !reader.isAtEnd {
      let fileOffset = { (position: Int) in UInt32(exactly: offset + Int64(position - body.startIndex)) }
      guard let record = record(from: &reader, segment: segment, fileOffset: fileOffset) else { return nil }
      records.append(record)
    }
    return records
  }

  private static func record(
    from reader: inout ByteReader, segment: UInt32, fileOffset: (Int) -> UInt32?
  ) -> QueueRecord? {
    guard let kind = reader.read(UInt8.self).flatMap(Kind.init(rawValue:)) else { return nil }
    switch kind {
    case .put:
      return item(from: &reader, segment: segment, fileOffset: fileOffset).map { .put($0) }
    case .segments:
      return segments(from: &reader).map { .segments($0) }
    case .state:
      guard let phase = reader.read(UInt8.self).flatMap(QueueItem.Phase.init(rawValue:)),
        let sequence = readSequence(&reader), let attempts = reader.readVariable(), attempts <= 1 << 32,
        let standing = readStanding(phase, &reader)
      else { return nil }
      return .state(sequence: sequence, attempts: attempts > 0 ? UInt32(clamping: attempts - 1) : nil, standing)
    case .remove:
      guard let first = readSequence(&reader), let distance = reader.readVariable(),
        distance <= greatestSequence - first
      else { return nil }
      return .remove(first...first + distance)
    case .acknowledge:
      guard let sequence = readSequence(&reader), let deadline = reader.read(Int64.self), let key = readKey(&reader)
      else { return nil }
      return .acknowledge(sequence: sequence, key: key, deadline: deadline)
    case .requeue:
      guard let sequence = readSequence(&reader), let newSequence = readSequence(&reader),
        let arrival = reader.read(Int64.self)
      else { return nil }
      return .requeue(sequence: sequence, newSequence: newSequence, arrival: arrival)
    case .remember:
      guard let sequence = readSequence(&reader), let deadline = reader.read(Int64.self), let key = readKey(&reader)
      else { return nil }
      return .remember(key: key, sequence: sequence, deadline: deadline)
    }
  }

  private static func item(
    from reader: inout ByteReader, segment: UInt32, fileOffset: (Int) -> UInt32?
  ) -> ItemState? {
    guard let length = reader.read(UInt32.self), let offset = fileOffset(reader.position),
      reader.read(UInt32.self) != nil, reader.read(count: Int(length)) != nil,
      let flags = reader.read(UInt8.self), let phase = QueueItem.Phase(rawValue: flags & 3),
      flags & ~3 & ~callersKeyFlag & ~generatedKeyFlag == 0, reader.read(UInt8.self) != nil,
      reader.readBytes(upTo: maximumGroupLength) != nil, let sequence = readSequence(&reader),
      let attempts = reader.readVariable(as: UInt32.self), let arrival = reader.read(Int64.self),
      let standing = readStanding(phase, &reader)
    else { return nil }
    let isKeyGenerated = flags & generatedKeyFlag != 0
    guard let key = isKeyGenerated ? QueueLedger.generatedKey(of: sequence) : readKey(&reader) else { return nil }
    let item = QueueItem(
      sequence: sequence, key: key, arrival: arrival,
      place: QueuePlace(segment: segment, offset: offset, length: length), attempts: attempts, stateSegment: segment,
      hasCallersKey: flags & callersKeyFlag != 0)
    var state = ItemState(item: item)
    state.standing = standing
    return state
  }

  private static func segments(from reader: inout ByteReader) -> [SegmentEnd]? {
    guard let count = reader.readVariable() else { return nil }
    var segments: [SegmentEnd] = []
    // Each takes at least two bytes, so the remaining bytes limit the number of iterations.
    for _ in 0..<count {
      guard let number = reader.readVariable(as: UInt32.self), number > segments.last?.number ?? 0,
        let size = reader.readVariable(as: UInt32.self)
      else { return nil }
      segments.append(SegmentEnd(number: number, size: Int64(size)))
    }
    return segments
  }

  private static func readStanding(_ phase: QueueItem.Phase, _ reader: inout ByteReader) -> Standing? {
    switch phase {
    case .waiting: return .waiting
    case .delayed, .leased:
      guard let deadline = reader.read(Int64.self), let length = reader.readVariable(as: Int64.self) else { return nil }
      if phase == .delayed { return .delayed(ItemTimer(deadline: deadline, length: length)) }
      return reader.read(UInt64.self).map { .leased(ItemTimer(deadline: deadline, length: length, epoch: $0)) }
    case .dead:
      return readCause(&reader).map { .dead($0) }
    }
  }

  private static func readKey(_ reader: inout ByteReader) -> StoreKey? {
    guard let bytes = reader.readBytes(upTo: StoreKey.maximumLength), !bytes.isEmpty else { return nil }
    return StoreKey(bytes: bytes)
  }

  private static func readSequence(_ reader: inout ByteReader) -> UInt64? {
    reader.readVariable().flatMap(believed)
  }

  /// Returns a sequence number, or `nil` if no queue can have assigned it.
  static func believed(_ sequence: UInt64) -> UInt64? {
    sequence > 0 && sequence <= greatestSequence ? sequence : nil
  }

  static func readCause(_ reader: inout ByteReader) -> DeadLetterCause? {
    guard let reason = reader.read(UInt8.self), let time = reader.read(Int64.self) else { return nil }
    return DeadLetterCause(reason: DeadLetterReason(rawValue: reason), time: time)
  }
}
