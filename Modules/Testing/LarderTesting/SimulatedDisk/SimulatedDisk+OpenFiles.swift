import Foundation
import LarderFiles

/// The operations on open files, and direct access to the contents of files.
extension SimulatedDisk {
  // MARK: Operations on open files

  /// Returns the node of an open file.
  ///
  /// - Throws: `EBADF` if the process was killed or the file was closed.
  private func node(ofFile file: Int, _ operation: FileError.Operation, _ path: String) throws(FileError) -> Int {
    guard let open = openFiles[file] else { throw FileError(operation, path: path, errorNumber: EBADF) }
    if open.isReadOnly, operation == .write || operation == .truncate {
      throw FileError(operation, path: path, errorNumber: operation == .write ? EBADF : EINVAL)
    }
    return open.node
  }

  mutating func read(
    _ file: Int, _ path: String, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(FileError) -> Int {
    let course = try begin(.read, path)
    let content = nodes[try node(ofFile: file, .read, path)]?.content ?? []
    var available = content.dropFirst(offset).prefix(buffer.count)
    if case .short = course { available = available.prefix((available.count + 1) / 2) }
    buffer.copyBytes(from: available)
    try end(course, .read, path)
    return available.count
  }

  mutating func write(
    _ file: Int, _ path: String, _ bytes: UnsafeRawBufferPointer, at offset: Int
  ) throws(FileError) -> Int {
    let course = try begin(.write, path)
    let node = try node(ofFile: file, .write, path)
    var count = bytes.count
    if case .short = course { count = (count + 1) / 2 }
    if let capacity {
      let size = nodes[node]?.content.count ?? 0
      let free = max(0, capacity - usedSpace)
      count = min(count, free + max(0, size - offset))
      if count == 0, !bytes.isEmpty { throw FileError(.write, path: path, errorNumber: ENOSPC) }
    }
    nodes[node]?.change(.write(bytes: Array(bytes.prefix(count)), offset: offset))
    try end(course, .write, path)
    return count
  }

  /// The number of bytes in all files that have a name or are open.
  private var usedSpace: Int {
    let open = Set(openFiles.values.map(\.node))
    return nodes.reduce(0) { $0 + ($1.value.linkCount > 0 || open.contains($1.key) ? $1.value.content.count : 0) }
  }

  /// Runs an operation that changes an open file.
  mutating func change(
    _ file: Int, _ path: String, by operation: FileError.Operation, _ body: (inout SimulatedNode?) -> Void
  ) throws(FileError) {
    let course = try begin(operation, path)
    let number = try node(ofFile: file, operation, path)
    body(&nodes[number])
    try end(course, operation, path)
  }

  mutating func synchronize(_ file: Int, _ path: String) throws(FileError) {
    let node = try node(ofFile: file, .synchronize, path)
    let course: Course
    do throws(FileError) {
      course = try begin(.synchronize, path)
    } catch {
      // EINTR means that the synchronization was not attempted.
      if hasPower, error.errorNumber != EINTR { nodes[node]?.loseContentChanges(using: &generator) }
      throw error
    }
    // If the power is lost, the changes of the content stay pending.
    try end(course, .synchronize, path)
    nodes[node]?.synchronizeContent()
  }

  /// Returns the size of an open file, which a system knows without the disk, so no operation is counted.
  func size(_ file: Int, _ path: String) throws(FileError) -> Int64 {
    let node = try node(ofFile: file, .attributes, path)
    guard let size = attributes(ofNode: node)?.size else {
      throw FileError(.attributes, path: path, errorNumber: EBADF)
    }
    return size
  }

  mutating func attributes(_ file: Int, _ path: String) throws(FileError) -> FileAttributes {
    let course = try begin(.attributes, path)
    let node = try node(ofFile: file, .attributes, path)
    try end(course, .attributes, path)
    guard let attributes = attributes(ofNode: node) else {
      throw FileError(.attributes, path: path, errorNumber: EBADF)
    }
    return attributes
  }

  mutating func lock(_ file: Int, _ path: String, _ kind: FileLock.Kind) throws(FileError) -> Bool {
    let course = try begin(.lock, path)
    let node = try node(ofFile: file, .lock, path)
    try end(course, .lock, path)
    let others = (nodes[node]?.locks ?? [:]).filter { $0.key != file }
    guard others.isEmpty || (kind == .shared && others.values.allSatisfy { $0 == .shared }) else { return false }
    nodes[node]?.locks[file] = kind
    return true
  }

  /// Closes a file.
  ///
  /// Closing cannot fail, because data that must be durable was synchronized before.
  mutating func close(_ file: Int) {
    guard let node = openFiles.removeValue(forKey: file)?.node else { return }
    nodes[node]?.locks[file] = nil
  }

  // MARK: Direct access

  func content(at path: String) -> [UInt8]? {
    var node = nodes[SimulatedDisk.root]
    for component in SimulatedDisk.components(of: path) {
      node = node?.names[String(component)].flatMap { nodes[$0] }
    }
    return node.flatMap { $0.isDirectory ? nil : $0.content }
  }

  /// Creates a durable file, as if it had always existed.
  mutating func place(_ content: [UInt8], at path: String) throws(FileError) {
    let place = try place(of: path, for: .write)
    let number = node(at: place) ?? add(SimulatedNode(isDirectory: false, permissions: 0o600), at: place)
    guard nodes[number]?.isDirectory == false else { throw FileError(.write, path: path, errorNumber: EISDIR) }
    // Any other pending change of this name would otherwise take effect after this one.
    for index in nameChanges.indices {
      if nameChanges[index].removed == place { nameChanges[index].removed = nil }
      if nameChanges[index].added?.place == place { nameChanges[index].added = nil }
    }
    nameChanges.removeAll { $0.directories.isEmpty }
    nodes[place.directory]?.durableNames[place.name] = number
    nodes[number]?.content = content
    nodes[number]?.modificationTime += 1
    nodes[number]?.durableContent = content
    nodes[number]?.contentChanges.removeAll()
  }
}
