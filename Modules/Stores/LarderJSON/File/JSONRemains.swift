import Larder
import LarderFiles

/// What can still be read of a damaged document, line by line as Larder writes it: one entry a line, keys in order.
///
/// A line that cannot be read, or whose checksum is wrong, leaves a hole: what the keys between its neighbours hold is not
/// known, nor whether they exist.
struct JSONRemains {
  /// A damaged part of the document.
  struct Damage {
    /// The first damaged line, counted from 1.
    var line: Int
    var message: String
  }

  private(set) var document: JSONDocument

  /// The keys of which nothing is known, in order.
  private(set) var holes: [KeyRange] = []
  private(set) var damages: [Damage] = []

  /// Where the hole begins that the lines read so far end in, or `nil` if they end in an entry.
  private var openHole: StoreKey?

  /// Reads the lines of a document.
  ///
  /// - Parameters:
  ///   - text: All of the file, with NUL for bytes that the disk could not read.
  ///   - attributes: Those of the file.
  /// - Returns: `nil` if the text is not laid out as Larder does it, or its first line is damaged: then nothing can be told.
  init?(of text: [UInt8], _ attributes: FileAttributes) {
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard let head = lines.first, let document = JSONRemains.document(Array(head) + Array("}}".utf8)) else {
      return nil
    }
    self.document = document
    let lastLine = lines.lastIndex { !$0.isEmpty } ?? 0
    let isComplete = lastLine > 0 && lines[lastLine].first == UInt8(ascii: "}")
    let end = isComplete ? JSONRemains.document(Array("{\"larder\":2,\"entries\":{".utf8) + lines[lastLine]) : nil
    let stamp = end?.stamp.flatMap { $0.isStamp(of: attributes) ? $0 : nil }
    let damagedRanges = stamp?.damagedRanges(of: text) ?? []

    var previous: StoreKey = ""
    var nextDamage = 0
    // A line without its end may be a part of one: of a number, the first digits.
    for index in lines.indices.dropFirst().prefix(isComplete ? lastLine - 1 : max(0, lines.count - 2)) {
      let line = lines[index]
      while nextDamage < damagedRanges.count, damagedRanges[nextDamage].upperBound <= line.startIndex {
        nextDamage += 1
      }
      let isDoubtful = nextDamage < damagedRanges.count && damagedRanges[nextDamage].lowerBound <= line.endIndex
      guard !isDoubtful, let (key, value) = JSONRemains.entry(in: line) else {
        if openHole == nil {
          openHole = previous.isEmpty ? previous : previous.successor
          damages.append(Damage(line: index + 1, message: JSONRemains.message(isDoubtful: isDoubtful)))
        }
        continue
      }
      guard key > previous else { return nil }
      if let lower = openHole { holes.append(lower..<key) }
      openHole = nil
      previous = key
      _ = self.document.entries.setValue(value, forKey: key)
    }
    if !isComplete, openHole == nil {
      openHole = previous.isEmpty ? previous : previous.successor
      damages.append(Damage(line: lines.count, message: "the end of the document is missing"))
    }
    if let openHole { holes.append(openHole...) }
    if isComplete, end == nil {
      damages.append(Damage(line: lastLine + 1, message: "the member \"written\" cannot be read"))
    }
    guard !damages.isEmpty else { return nil }
  }

  private static func message(isDoubtful: Bool) -> String {
    isDoubtful
      ? "the checksum of this part of the document is wrong, so its entries are not shown"
      : "the entries up to the next line that can be read are damaged"
  }

  /// The document that some lines are, if they are one.
  private static func document(_ text: [UInt8]) -> JSONDocument? {
    do {
      return try JSONDocument(text)
    } catch {
      // What is wrong with the document was said before the remains of it were looked at.
      return nil
    }
  }

  /// The entry that a line holds, exactly as Larder writes one.
  private static func entry(in line: ArraySlice<UInt8>) -> (key: StoreKey, value: ArraySlice<UInt8>)? {
    do {
      var scanner = JSONScanner(line)
      guard scanner.current == UInt8(ascii: "\"") else { return nil }
      let name = try scanner.string()
      guard let key = JSONKey.key(of: name), !key.isEmpty, key.count <= StoreKey.maximumLength,
        scanner.current == UInt8(ascii: ":")
      else { return nil }
      try scanner.expect(UInt8(ascii: ":"))
      let start = scanner.position
      let value = try scanner.value()
      guard value.startIndex == start else { return nil }
      _ = scanner.skip(UInt8(ascii: ","))
      try scanner.expectEnd()
      return (key, value)
    } catch {
      return nil
    }
  }
}
