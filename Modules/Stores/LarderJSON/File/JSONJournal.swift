import Larder

/// What a journal holds, as it is found when a store is opened: see ``JSONJournalLine`` for its lines.
///
/// A line that cannot be read is the torn tail of a batch that never happened, unless it lies before what a later line
/// says was durable: then the file was damaged afterwards, and that is reported.
struct JSONJournal {
  /// Why a journal cannot be used.
  enum Problem: Error, Equatable {
    /// A line was damaged after it was durable.
    case damaged(line: Int, reason: String)
    /// It is in a version of the format that came later.
    case newerVersion(String)
  }

  /// The codec of the values.
  let codecName: String

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
    guard let head = lines.next(), let content = try JSONJournal.content(of: head, number: 1),
      case .head(let codecName) = content
    else {
      throw Problem.damaged(line: 1, reason: "it is not the first line of a journal")
    }
    self.codecName = codecName
    size = head.endIndex + 1

    var number = 1
    var firstBadLine: Int?
    while let line = lines.next() {
      number += 1
      guard let content = try JSONJournal.content(of: line, number: number) else {
        firstBadLine = firstBadLine ?? number
        // Where it is the line end that was damaged, the next line is a part of this one, and what it says counts.
        for part in JSONJournalLine.parts(of: line) {
          guard case .batch(_, let durable)? = try JSONJournal.content(of: part, number: number) else { continue }
          guard durable <= size else { throw Problem.damaged(line: number, reason: "its line end is damaged") }
        }
        continue
      }
      guard case .batch(let changes, let durable) = content else {
        throw Problem.damaged(line: number, reason: "it is a first line where none belongs")
      }
      if let firstBadLine {
        guard durable <= size else { throw Problem.damaged(line: firstBadLine, reason: "its checksum is wrong") }
      } else {
        batches.append(changes)
        size = line.endIndex + 1
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
