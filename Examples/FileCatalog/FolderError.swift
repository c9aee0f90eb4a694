/// A folder that cannot be catalogued.
struct FolderError: Error, CustomStringConvertible {
  /// The folder's path.
  let folder: String

  /// What the system said.
  let cause: SystemError

  /// What went wrong and what to do, in one line.
  var description: String {
    "cannot read the folder \(folder): \(cause); please name one that is there and may be read"
  }
}
