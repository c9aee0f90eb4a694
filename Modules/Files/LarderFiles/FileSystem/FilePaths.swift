/// Takes paths apart and puts them together, byte by byte as the system does: a slash stays one whatever follows it.
package enum FilePaths {
  private static let slash = UInt8(ascii: "/")

  /// The directory and the last component of a path; the directory of a bare name is ".".
  package static func split(_ path: String) -> (directory: String, name: String) {
    var trimmed = Array(path.utf8)[...]
    while trimmed.count > 1, trimmed.last == slash { trimmed.removeLast() }
    guard let slash = trimmed.lastIndex(of: slash) else { return (".", String(decoding: trimmed, as: UTF8.self)) }
    let directory = trimmed[..<slash]
    let name = String(decoding: trimmed[(slash + 1)...], as: UTF8.self)
    return (directory.isEmpty ? "/" : String(decoding: directory, as: UTF8.self), name)
  }

  /// A name in a directory.
  package static func join(_ directory: String, _ name: String) -> String {
    directory.utf8.last == slash ? directory + name : "\(directory)/\(name)"
  }
}
