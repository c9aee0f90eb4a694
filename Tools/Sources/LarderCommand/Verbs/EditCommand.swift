import ArgumentParser
import Foundation
import Larder
import LarderExpiry
import StoreAccess

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// `larder edit`.
struct EditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Edit the value of a key in an editor.",
    discussion: """
      Opens the value as indented JSON in $VISUAL, $EDITOR or vi, and stores it when the editor ends. The text of a \
      missing key is empty. If the text is unchanged or empty, nothing is stored. The deadline of an entry stays.

      The store is not open while you edit. If another program changes the value in the meantime, or if the text is not \
      JSON, nothing is stored, and the text stays in the file that the message names.

        larder edit json:users.json ada
        EDITOR='code --wait' larder edit lmdb:shop#settings currency
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The key.") var key: String
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let key = try keys.key(key)
    let target = store.target
    let value = try await StoreSession.run(target) { store, _ in try await store.peekValue(forKey: key) }
    let file = try EditedFile(value?.indented ?? [])
    let hint = "Your text is in \(file.path)."
    do {
      if let edited = try file.edit() {
        let new = try EditCommand.json(edited)
        try await StoreSession.run(target) { store, _ in
          try await EditCommand.replace(value, with: new, forKey: key, in: store)
        }
      }
    } catch let error as StoreError {
      throw CommandFailure(error, hint: hint)
    } catch let failure as CommandFailure {
      throw CommandFailure(failure.status, failure.message.trimmingSuffix("."), advice: hint)
    }
    file.remove()
  }

  private static func json(_ text: [UInt8]) throws -> JSONText {
    do {
      return try JSONText(text)
    } catch let error as JSONSyntaxError {
      throw CommandFailure(.badData, "the text is not JSON: \(error)", advice: "Nothing was changed.")
    }
  }

  /// Replaces a value if it is still the same.
  ///
  /// - Throws: ``CommandFailure`` with ``ExitStatus/tryAgain`` if it is not; the store's errors.
  private static func replace(
    _ old: JSONText?, with new: JSONText, forKey key: StoreKey, in store: OpenedStore
  ) async throws {
    let change: @Sendable (inout UpdateSlots<JSONText>) throws -> Void = { slots in
      guard slots[0] == old else {
        throw CommandFailure(.tryAgain, "another program has changed the value since it was read")
      }
      slots[0] = new
    }
    if let expiry = store.expiry {
      try await expiry.updateKeepingDeadlines([key], change)
    } else {
      try await store.present.update([key], change)
    }
  }
}

/// A temporary file with a text that the user edits.
private struct EditedFile {
  let path: String

  private let text: [UInt8]

  /// Creates a file that only this user can read.
  ///
  /// - Throws: ``CommandFailure``.
  init(_ text: [UInt8]) throws {
    self.text = text
    let folder = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    // Editors choose the colors by the suffix.
    let suffix = ".json"
    var template = Array("\(folder)/larder-XXXXXX\(suffix)".utf8CString)
    let number = mkstemps(&template, Int32(suffix.utf8.count))
    path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    do throws(SystemError) {
      guard number >= 0 else { throw .last }
      let descriptor = Descriptor(number: number)
      defer { descriptor.close() }
      try descriptor.write(text)
    } catch {
      throw CommandFailure(.inputOutput, "cannot write a temporary file in \(folder): \(error.message)")
    }
  }

  /// Waits while the user edits the text.
  ///
  /// - Returns: The new text, or `nil` if it is unchanged or empty.
  /// - Throws: ``CommandFailure`` if the editor fails, or the text cannot be read.
  func edit() throws -> [UInt8]? {
    let environment = ProcessInfo.processInfo.environment
    let editor = ["VISUAL", "EDITOR"].compactMap { environment[$0] }.first { !$0.isEmpty }
    // As for the editor of git: a command line for the shell. The shell ignores no signals, and this process ignores the
    // interrupts from the terminal until it ends.
    let status = system("\(editor ?? "vi") '\(path.replacing("'", with: #"'\''"#))'")
    guard status == 0 else {
      throw CommandFailure(.internalFailure, "the editor failed", advice: "Set EDITOR to the command of your editor.")
    }
    var input = try ByteInput(path)
    let edited = try input.readToEnd()
    return edited == text || edited.allSatisfy { " \t\r\n".utf8.contains($0) } ? nil : edited
  }

  /// Removes the file, which is in a folder for temporary files if that fails.
  func remove() {
    unlink(path)
  }
}

extension JSONText {
  /// The text with an indented line for each element and member, and an end of line.
  var indented: [UInt8] {
    var result: [UInt8] = []
    var depth = 0
    var isInString = false
    var isEscaped = false
    func newLine() {
      result.append(UInt8(ascii: "\n"))
      result.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * depth))
    }
    for (index, byte) in bytes.enumerated() {
      if isInString {
        result.append(byte)
        (isInString, isEscaped) = (isEscaped || byte != UInt8(ascii: "\""), !isEscaped && byte == UInt8(ascii: "\\"))
        continue
      }
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        result.append(byte)
        depth += 1
        // The next byte exists, because the text is valid. An empty object or array stays in its line.
        if !JSONText.isEnd(bytes[index + 1]) { newLine() }
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if !JSONText.isStart(bytes[index - 1]) { newLine() }
        result.append(byte)
      case UInt8(ascii: ","):
        result.append(byte)
        newLine()
      case UInt8(ascii: ":"): result += [byte, UInt8(ascii: " ")]
      default:
        isInString = byte == UInt8(ascii: "\"")
        result.append(byte)
      }
    }
    result.append(UInt8(ascii: "\n"))
    return result
  }

  private static func isStart(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") }

  private static func isEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") }
}
