/// What a file is opened for.
public enum FileOpenMode: Sendable, Hashable {
  /// Reading; the file must exist.
  case read
  /// Reading and writing; the file must exist.
  case readWrite
  /// Reading and writing; the file is created where it is missing.
  case createIfMissing
  /// Reading and writing; the file must not exist and is created.
  case createNew
}
