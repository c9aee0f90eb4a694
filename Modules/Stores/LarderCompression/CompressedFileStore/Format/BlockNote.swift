#if Compression
import Larder

/// A change as the header of its block notes it, so that it is known what is lost where the data of the block are
/// damaged.
enum BlockNote: Equatable {
  /// A key got a value.
  case set(StoreKey)
  /// A key was removed.
  case remove(StoreKey)
  /// A range was removed; its bounds have at most ``StoreKey/maximumLength`` bytes and one.
  case removeAll(KeyRange)
  /// The entries of a base from one key to another, both included.
  case entries(first: StoreKey, last: StoreKey)

  /// The codec of the values, in the head of a file.
  case codec(name: String)

  private enum Code: UInt8 {
    case set = 1, remove, removeAllFrom, removeAllBetween, entries, codec
  }

  /// Appends the note.
  func append(to bytes: inout [UInt8]) {
    switch self {
    case .set(let key): BlockNote.append(.set, [key], to: &bytes)
    case .remove(let key): BlockNote.append(.remove, [key], to: &bytes)
    case .removeAll(let range):
      if let upperBound = range.upperBound {
        BlockNote.append(.removeAllBetween, [range.lowerBound, upperBound], to: &bytes)
      } else {
        BlockNote.append(.removeAllFrom, [range.lowerBound], to: &bytes)
      }
    case .entries(let first, let last): BlockNote.append(.entries, [first, last], to: &bytes)
    case .codec(let name): BlockNote.append(.codec, [StoreKey(name)], to: &bytes)
    }
  }

  private static func append(_ code: Code, _ keys: [StoreKey], to bytes: inout [UInt8]) {
    bytes.append(code.rawValue)
    for key in keys {
      bytes.append(littleEndian: UInt16(truncatingIfNeeded: key.count))
      key.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }
  }

  /// The notes of a header, or `nil` where they make no sense.
  static func notes(of bytes: [UInt8]) -> [BlockNote]? {
    var rest = bytes[...]
    var notes: [BlockNote] = []
    while let byte = rest.popFirst() {
      guard let code = Code(rawValue: byte), let first = key(&rest) else { return nil }
      switch code {
      case .set: notes.append(.set(first))
      case .remove: notes.append(.remove(first))
      case .removeAllFrom: notes.append(.removeAll(KeyRange(from: first, upTo: nil)))
      case .removeAllBetween:
        guard let second = key(&rest) else { return nil }
        notes.append(.removeAll(KeyRange(from: first, upTo: second)))
      case .entries:
        guard let second = key(&rest) else { return nil }
        notes.append(.entries(first: first, last: second))
      case .codec: notes.append(.codec(name: String(decoding: first.bytes, as: UTF8.self)))
      }
    }
    return notes
  }

  private static func key(_ rest: inout ArraySlice<UInt8>) -> StoreKey? {
    guard let low = rest.popFirst(), let high = rest.popFirst() else { return nil }
    let count = Int(low) | Int(high) << 8
    guard rest.count >= count else { return nil }
    defer { rest.removeFirst(count) }
    return StoreKey(bytes: rest.prefix(count))
  }
}

extension KeyRange {
  /// A range of the same keys whose bounds have at most ``StoreKey/maximumLength`` bytes and one.
  ///
  /// Between a longer bound and its beginning with a zero byte behind there is no key that could be stored.
  var withShortBounds: KeyRange {
    func short(_ bound: StoreKey) -> StoreKey {
      guard bound.count > StoreKey.maximumLength else { return bound }
      return StoreKey(bytes: bound.bytes.prefix(StoreKey.maximumLength) + [0])
    }
    return KeyRange(from: short(lowerBound), upTo: upperBound.map(short))
  }
}
#endif
