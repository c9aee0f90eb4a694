import Foundation

/// Names in a file, one to a line, so that they are known again after the process has died.
struct NotedNames {
  /// The names.
  private(set) var names: Set<String>

  private let file: FileHandle

  /// Reads the names in a file, which is made where it is missing.
  ///
  /// - Parameter path: The file.
  /// - Throws: ``SystemError`` where it cannot be opened; what reading and truncating it throw.
  init(path: String) throws {
    let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SystemError.current() }
    file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    let bytes = try file.readToEnd() ?? Data()
    // Who was killed while writing has left a part of a line.
    let lines = bytes.lastIndex(of: UInt8(ascii: "\n")).map { bytes[...$0] } ?? Data()
    try file.truncate(atOffset: UInt64(lines.count))
    names = Set(lines.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) })
  }

  /// Notes names; they outlive the process from then on.
  ///
  /// - Parameter more: The names; those that are there already are left out.
  /// - Returns: How many were new.
  /// - Throws: What writing throws; none of the names counts then.
  @discardableResult
  mutating func note(_ more: [String]) throws -> Int {
    let new = Set(more).subtracting(names)
    guard !new.isEmpty else { return 0 }
    try file.write(contentsOf: Data(new.map { "\($0)\n" }.joined().utf8))
    names.formUnion(new)
    return new.count
  }
}
