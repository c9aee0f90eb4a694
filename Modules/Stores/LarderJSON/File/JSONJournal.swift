import Larder

/// What a journal holds, as it is found when a store is opened: see ``JSONJournalLine`` for its lines.
///
/// A line that cannot be read is the torn tail of a batch that never happened, unless it lies before what a later batch or
/// a mark says was durable: then the file was damaged afterwards, and that is reported.
struct JSONJournal {
  /// Why a journal cannot be used.
  enum Problem: Error, Equatable {
    /// A line was damaged after it was durable.
    case damaged(line: Int, reason: String)
    /// It is in a version of the format that came later.
    case newerVersion(String)
  }

  /// What the first line says.
  let head: JSONJournalLine.Head

  /// Where the first line ends.
  let headSize: Int

  /// The batches, in the order in which they were written.
  private(set) var batches: [[Change<ArraySlice<UInt8>>]] = []

  /// Where the last good line ends; what stands behind it is to be removed.
  private(set) var size: Int

  /// Reads a journal.
  ///
  /// - Parameter text: All of the file.
  /// - Throws: ``Problem``.
  init(_ text: [UInt8]) throws {
    var lines = Lines(text: text)
    // The file comes into being whole and with its head, so no crash explains a missing or damaged one.
    guard let first = lines.next(), let content = try JSONJournal.content(of: first, number: 1),
      case .head(let head) = content
    else {
      throw Problem.damaged(line: 1, reason: "it is not the first line of a journal")
    }
    self.head = head
    headSize = first.endIndex + 1
    size = headSize

    var number = 1
    var firstBadLine: Int?
    while let line = lines.next() {
      number += 1
      guard let content = try JSONJournal.content(of: line, number: number) else {
        firstBadLine = firstBadLine ?? number
        // If it is the line end that was damaged, the next line is a part of this one, and what it says counts.
        for content in JSONJournalLine.linesSwallowed(by: line) {
          guard content.durable <= size else { throw Problem.damaged(line: number, reason: "its line end is damaged") }
        }
        continue
      }
      switch content {
      case .head: throw Problem.damaged(line: number, reason: "it is a first line where none belongs")
      case .batch(let changes, _) where firstBadLine == nil:
        batches.append(changes)
        size = line.endIndex + 1
      case .batch, .mark:
        guard content.durable <= size else {
          throw Problem.damaged(
            line: firstBadLine ?? number, reason: "its checksum is wrong, or lines before it are gone")
        }
        // What stands behind a mark stands behind what was complete when the mark was written.
        firstBadLine = firstBadLine ?? number
      }
    }
  }

  /// What a line says, or `nil` where its checksum is wrong.
  private static func content(of line: ArraySlice<UInt8>, number: Int) throws -> JSONJournalLine.Content? {
    do {
      return try JSONJournalLine.content(of: line)
    } catch JSONJournalLine.Problem.damaged {
      return nil
    } catch JSONJournalLine.Problem.newerVersion(let version) {
      throw Problem.newerVersion(version)
    } catch JSONJournalLine.Problem.malformed(let reason) {
      // The checksum is right, so this is what was written: no crash has torn it.
      throw Problem.damaged(line: number, reason: reason)
    }
  }

  /// The complete lines of a text, without their line ends; what has no line end is the beginning of one that was torn.
  private struct Lines: IteratorProtocol {
    let text: [UInt8]
    var position = 0

    mutating func next() -> ArraySlice<UInt8>? {
      guard let end = text[position...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      defer { position = end + 1 }
      return text[position..<end]
    }
  }
}

extension JSONJournalLine.Content {
  /// How many bytes of the journal were known to be durable when the line was written.
  fileprivate var durable: Int64 {
    switch self {
    case .head: 0
    case .batch(_, let durable), .mark(let durable): durable
    }
  }
}
