/// The kind of an item in a folder.
enum FileKind: String, Codable, Hashable, Sendable, CaseIterable {
  case file
  case folder
  case symbolicLink
  /// A device, a socket or a pipe.
  case other
}
