#if Compression
import Larder

/// A change as the header of a block of version 1 notes it, so that it is known what is lost where the data of the block are
/// damaged.
enum Version1Note: Equatable {
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

  /// The notes of a header, or `nil` where they make no sense.
  static func notes(of bytes: [UInt8]) -> [Version1Note]? {
    var rest = bytes[...]
    var notes: [Version1Note] = []
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
#endif
