#if Compression
import Larder

/// What a block has changed, without the values, as the notes of a later block repeat it.
///
/// ```
/// {"set":["user:1001",7,"2",7,"3"]},{"remove":["user:7"]},{"removeAll":{"from":"a","upTo":"b"}}
/// ```
///
/// A number before a key says how many bytes at the beginning of the key before it belong to this one, too.
struct ChangeNotes: Equatable, Sendable {
  private enum Group { case none, set, remove, removeAll }

  private var text: [UInt8] = []
  private var group = Group.none
  private var lastKey: StoreKey = ""

  /// A beginning that is shorter than this is not worth a number.
  private static let shortestBeginning = 4

  /// The bytes that they take.
  var count: Int { text.count + 2 }

  /// The notes, as the elements of a JSON array.
  var bytes: [UInt8] { group == .set || group == .remove ? text + Array("]}".utf8) : text }

  // MARK: Writing

  /// Takes note of a change.
  mutating func add(_ change: Change<Void>) {
    switch change {
    case .set(let key, _): add(key, to: .set, "{\"set\":[")
    case .remove(let key): add(key, to: .remove, "{\"remove\":[")
    case .removeAll(let range):
      end()
      text.append(contentsOf: "{\"removeAll\":".utf8)
      JSONKey.append(range, to: &text)
      text.append(UInt8(ascii: "}"))
      group = .removeAll
    }
  }

  private mutating func add(_ key: StoreKey, to newGroup: Group, _ start: StaticString) {
    if group == newGroup {
      text.append(UInt8(ascii: ","))
    } else {
      end()
      start.withUTF8Buffer { text.append(contentsOf: $0) }
      group = newGroup
      lastKey = ""
    }
    let shared = ChangeNotes.sharedCount(of: key, lastKey)
    if shared >= ChangeNotes.shortestBeginning {
      text.append(decimal: shared)
      text.append(UInt8(ascii: ","))
      let rest = key.withUnsafeBytes { StoreKey(copying: UnsafeRawBufferPointer(rebasing: $0[shared...])) }
      JSONKey.append(rest, to: &text)
    } else {
      JSONKey.append(key, to: &text)
    }
    lastKey = key
  }

  /// How many bytes two keys have in common at their beginning.
  private static func sharedCount(of key: StoreKey, _ other: StoreKey) -> Int {
    key.withUnsafeBytes { key in
      other.withUnsafeBytes { other in
        var count = 0
        while count < key.count, count < other.count, key[count] == other[count] { count += 1 }
        return count
      }
    }
  }

  private mutating func end() {
    switch group {
    case .none: return
    case .set, .remove: text.append(contentsOf: "]},".utf8)
    case .removeAll: text.append(UInt8(ascii: ","))
    }
  }

  // MARK: Reading

  /// Reads notes.
  ///
  /// - Parameter scanner: Stands before a JSON array of them, and goes over it.
  /// - Throws: ``JSONSyntaxError``.
  static func read(_ scanner: inout JSONScanner) throws -> [Change<Void>] {
    var changes: [Change<Void>] = []
    try scanner.forEachElement { scanner in
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "set": changes += try keys(&scanner).map { .set($0, ()) }
        case "remove": changes += try keys(&scanner).map { .remove($0) }
        case "removeAll": changes.append(.removeAll(try JSONKey.range(from: &scanner)))
        default: throw scanner.error("a kind of change is unknown")
        }
      }
    }
    return changes
  }

  private static func keys(_ scanner: inout JSONScanner) throws -> [StoreKey] {
    var keys: [StoreKey] = []
    var last: StoreKey = ""
    try scanner.forEachElement { scanner in
      var shared = 0
      if scanner.current != UInt8(ascii: "\"") {
        let digits = String(decoding: try scanner.value(), as: UTF8.self)
        guard let number = Int(digits), 0...last.count ~= number else { throw scanner.error("a key makes no sense") }
        shared = number
        try scanner.expect(UInt8(ascii: ","))
      }
      let rest = try JSONKey.key(from: &scanner)
      let key = shared == 0 ? rest : StoreKey(bytes: last.bytes.prefix(shared) + rest.bytes)
      guard key.count <= StoreKey.maximumLength else { throw scanner.error("a key is too long") }
      keys.append(key)
      last = key
    }
    return keys
  }
}

extension JSONScanner {
  /// Goes over an array, element by element.
  ///
  /// - Parameter body: Gets the scanner before an element, over which it must go.
  /// - Throws: What `body` throws; ``JSONSyntaxError`` if no well-formed array stands there.
  mutating func forEachElement(_ body: (inout JSONScanner) throws -> Void) throws {
    try expect(UInt8(ascii: "["))
    guard !skip(UInt8(ascii: "]")) else { return }
    repeat {
      skipWhitespace()
      try body(&self)
    } while skip(UInt8(ascii: ","))
    try expect(UInt8(ascii: "]"))
  }
}
#endif
