/// A folder that cannot be cataloged.
struct FolderError: Error, CustomStringConvertible {
  /// The path of the folder.
  let folder: String

  /// The message of the system.
  let cause: SystemError

  /// The error and its remedy, in one line.
  var description: String {
    "cannot read the folder \(folder): \(cause); pass a readable folder"
  }
}
