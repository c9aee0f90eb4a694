import Foundation
import LarderFiles

/// What happens to a file of a store while nobody has it open.
enum FileAlteration: CaseIterable, CustomStringConvertible {
  case cut, inverted, emptied, unreadable

  var description: String {
    switch self {
    case .cut: "a file cut to its half"
    case .inverted: "a file of which every bit was inverted"
    case .emptied: "an emptied file"
    case .unreadable: "a file that cannot be read"
    }
  }
}

extension ConformanceLocation {
  /// The paths of the files in the folder and below that hold something, lock files left out.
  ///
  /// - Throws: What the file system throws.
  func dataFileNames() throws -> [String] {
    try fileNames().filter { name in
      guard !name.contains("lock"), let attributes = try POSIXFileSystem().attributes(at: path(name)) else {
        return false
      }
      return attributes.kind == .file && attributes.size > 0
    }
  }

  /// The sizes of the files that hold something, in bytes.
  ///
  /// - Throws: What the file system throws.
  func dataFileSizes() throws -> [UInt64] {
    try dataFileNames().compactMap { name in
      try POSIXFileSystem().attributes(at: path(name)).map { UInt64(max(0, $0.size)) }
    }
  }

  /// Whether nothing was put into a folder.
  ///
  /// - Throws: What the file system throws.
  func isEmptyFolder(_ name: String) throws -> Bool {
    try POSIXFileSystem().attributes(at: path(name))?.kind == .directory
      && FileManager.default.contentsOfDirectory(atPath: path(name)).isEmpty
  }

  /// What is in a file; `nil` if there is none that can be read.
  func content(of name: String) throws -> Data? {
    let attributes = try POSIXFileSystem().attributes(at: path(name))
    return attributes?.kind == .file ? try Data(contentsOf: URL(filePath: path(name))) : nil
  }

  /// Alters a file.
  ///
  /// - Returns: Whether it could be done.
  /// - Throws: What the file system throws.
  func alter(_ name: String, _ alteration: FileAlteration) throws -> Bool {
    let url = URL(filePath: path(name))
    let content = try Data(contentsOf: url)
    // In place, so that the file keeps its identity, its owner and its permissions.
    let handle = try FileHandle(forWritingTo: url)
    switch alteration {
    case .cut: try handle.truncate(atOffset: UInt64(content.count / 2))
    case .inverted: try handle.write(contentsOf: Data(content.map { ~$0 }))
    case .emptied: try handle.truncate(atOffset: 0)
    case .unreadable:
      try handle.close()
      // Permissions do not keep root from reading; a folder in its place does.
      try FileManager.default.removeItem(at: url)
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
      return true
    }
    try handle.close()
    return true
  }
}
