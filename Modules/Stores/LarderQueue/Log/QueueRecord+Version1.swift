import Larder

/// Decoding records in version 1 of the format, which is no longer written.
extension QueueRecord {
  private enum Kind: UInt8 {
    case put = 1
    case lease, wait, remove, acknowledge, deadLetter, requeue, remember
  }

  private static let callersKeyFlag: UInt8 = 1 << 2

  static func version1(
    from reader: inout ByteReader, segment: UInt32, fileOffset: (Int) -> UInt32?
  ) -> QueueRecord? {
    guard let kind = reader.read(UInt8.self).flatMap(Kind.init(rawValue:)) else { return nil }
    if kind == .put { return item(from: &reader, segment: segment, fileOffset: fileOffset).map { .put($0) } }
    guard let sequence = reader.read(UInt64.self).flatMap(believed) else { return nil }
    switch kind {
    case .put:
      return nil
    case .lease:
      guard let attempts = reader.read(UInt32.self), let deadline = reader.read(Int64.self),
        let length = reader.read(Int64.self), let epoch = reader.read(UInt64.self), length >= 0
      else { return nil }
      return .state(
        sequence: sequence, attempts: attempts,
        .leased(ItemTimer(deadline: deadline, length: length, epoch: epoch)))
    case .wait:
      guard let deadline = reader.read(Int64.self), let length = reader.read(Int64.self), length >= 0 else {
        return nil
      }
      return .state(
        sequence: sequence, attempts: nil,
        length > 0 ? .delayed(ItemTimer(deadline: deadline, length: length)) : .waiting)
    case .remove:
      return .remove(sequence...sequence)
    case .acknowledge:
      guard let deadline = reader.read(Int64.self), let key = reader.readKey() else { return nil }
      return .acknowledge(sequence: sequence, key: key, deadline: deadline)
    case .deadLetter:
      return readCause(&reader).map { .state(sequence: sequence, attempts: nil, .dead($0)) }
    case .requeue:
      guard let newSequence = reader.read(UInt64.self).flatMap(believed), let arrival = reader.read(Int64.self) else {
        return nil
      }
      return .requeue(sequence: sequence, newSequence: newSequence, arrival: arrival)
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
      let sequence = reader.read(UInt64.self).flatMap(believed), let arrival = reader.read(Int64.self)
    else { return nil }
    let standing: Standing
    switch phase {
    case .waiting: standing = .waiting
    case .delayed, .leased:
      guard let deadline = reader.read(Int64.self), let length = reader.read(Int64.self), length >= 0 else {
        return nil
      }
      guard let epoch = phase == .leased ? reader.read(UInt64.self) : 0 else { return nil }
      let timer = ItemTimer(deadline: deadline, length: length, epoch: epoch)
      standing = phase == .leased ? .leased(timer) : .delayed(timer)
    case .dead:
      guard let cause = readCause(&reader) else { return nil }
      standing = .dead(cause)
    }
    guard let key = reader.readKey(), let length = reader.read(UInt32.self), let offset = fileOffset(reader.position),
      reader.read(UInt32.self) != nil, reader.read(count: Int(length)) != nil
    else { return nil }
    let item = QueueItem(
      sequence: sequence, key: key, arrival: arrival,
      place: QueuePlace(segment: segment, offset: offset, length: length), attempts: attempts, stateSegment: segment,
      hasCallersKey: flags & callersKeyFlag != 0)
    var state = ItemState(item: item)
    state.standing = standing
    return state
  }
}
