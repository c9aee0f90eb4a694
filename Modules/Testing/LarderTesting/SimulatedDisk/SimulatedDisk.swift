import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The state of a ``SimulatedFileSystem``: its files, which of them are open, and what is to go wrong.
struct SimulatedDisk {
  private static let root = 0

  private var nodes: [Int: SimulatedNode] = [SimulatedDisk.root: SimulatedNode(isDirectory: true, permissions: 0o700)]
  private var nextNode = 1

  /// The node of each open file.
  private var openFiles: [Int: Int] = [:]
  private var nextFile = 1

  private var generator: SeededGenerator
  private var faults: [Int: SimulatedFault] = [:]
  private(set) var operationCount = 0
  private(set) var hasPower = true
  var capacity: Int?

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
  }

  // MARK: What goes wrong

  mutating func schedule(_ fault: SimulatedFault, atOperation number: Int) {
    faults[number] = fault
  }

  mutating func clearFaults() {
    faults.removeAll()
  }

  mutating func killProcess() {
    openFiles.removeAll()
    for node in nodes.keys { nodes[node]?.lockOwner = nil }
  }

  mutating func losePower() {
    killProcess()
    for node in nodes.keys.sorted() { nodes[node]?.losePower(using: &generator) }
    removeUnreachableNodes()
  }

  mutating func restart() {
    if !hasPower { losePower() }
    hasPower = true
    clearFaults()
  }

  private mutating func removeUnreachableNodes() {
    var reachable: Set<Int> = []
    var pending = [SimulatedDisk.root]
    while let node = pending.popLast() {
      guard reachable.insert(node).inserted else { continue }
      pending.append(contentsOf: (nodes[node]?.names ?? [:]).values)
    }
    nodes = nodes.filter { reachable.contains($0.key) }
  }

  /// How an operation is to go.
  private enum Course {
    case normal
    case short
    /// It is done in part, or just begun; then everything ends.
    case powerLoss
  }

  /// Counts an operation and meets what was scheduled for it.
  private mutating func begin(_ operation: FileError.Operation, _ path: String) throws(FileError) -> Course {
    guard hasPower else { throw FileError(operation, path: path, errorNumber: EIO) }
    operationCount += 1
    switch faults[operationCount] {
    case nil: return .normal
    case .shortTransfer: return .short
    case .error(let errorNumber): throw FileError(operation, path: path, errorNumber: errorNumber)
    case .powerLoss:
      hasPower = false
      return .powerLoss
    }
  }

  /// Ends an operation: where the power went in its course, its caller never hears that it was done.
  private func end(_ course: Course, _ operation: FileError.Operation, _ path: String) throws(FileError) {
    guard case .powerLoss = course else { return }
    throw FileError(operation, path: path, errorNumber: EIO)
  }

  // MARK: Paths

  private static func components(of path: String) -> [Substring] {
    var components: [Substring] = []
    for component in path.split(separator: "/") where component != "." {
      if component == ".." { _ = components.popLast() } else { components.append(component) }
    }
    return components
  }

  private func node(at path: String) -> Int? {
    var node = SimulatedDisk.root
    for component in SimulatedDisk.components(of: path) {
      guard let next = nodes[node]?.names[String(component)] else { return nil }
      node = next
    }
    return node
  }

  private func parent(of path: String, for operation: FileError.Operation) throws(FileError) -> (
    node: Int, name: String
  ) {
    let (directory, name) = FilePaths.split(path)
    guard let parent = node(at: directory) else { throw FileError(operation, path: path, errorNumber: ENOENT) }
    guard nodes[parent]?.isDirectory == true else { throw FileError(operation, path: path, errorNumber: ENOTDIR) }
    return (parent, name)
  }

  // MARK: Operations on names

  mutating func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> Int {
    let course = try begin(.open, path)
    let (parent, name) = try parent(of: path, for: .open)
    var node = nodes[parent]?.names[name]
    if let node {
      if mode == .createNew { throw FileError(.open, path: path, errorNumber: EEXIST) }
      if nodes[node]?.isDirectory == true { throw FileError(.open, path: path, errorNumber: EISDIR) }
    } else {
      if mode == .read || mode == .readWrite { throw FileError(.open, path: path, errorNumber: ENOENT) }
      node = add(SimulatedNode(isDirectory: false, permissions: 0o600), named: name, to: parent)
    }
    try end(course, .open, path)
    let file = nextFile
    nextFile += 1
    openFiles[file] = node
    return file
  }

  private mutating func add(_ node: SimulatedNode, named name: String, to parent: Int) -> Int {
    let number = nextNode
    nextNode += 1
    nodes[number] = node
    nodes[parent]?.change(.add(name: name, node: number))
    return number
  }

  mutating func rename(_ path: String, to newPath: String) throws(FileError) {
    let course = try begin(.rename, newPath)
    let (parent, name) = try parent(of: path, for: .rename)
    let (newParent, newName) = try self.parent(of: newPath, for: .rename)
    guard let node = nodes[parent]?.names[name] else { throw FileError(.rename, path: path, errorNumber: ENOENT) }
    if parent == newParent {
      nodes[parent]?.change(.rename(from: name, to: newName, node: node))
    } else {
      nodes[parent]?.change(.remove(name: name, node: node))
      nodes[newParent]?.change(.add(name: newName, node: node))
    }
    try end(course, .rename, newPath)
  }

  mutating func removeFile(at path: String) throws(FileError) {
    let course = try begin(.removeFile, path)
    let (parent, name) = try parent(of: path, for: .removeFile)
    guard let node = nodes[parent]?.names[name] else { throw FileError(.removeFile, path: path, errorNumber: ENOENT) }
    guard nodes[node]?.isDirectory == false else { throw FileError(.removeFile, path: path, errorNumber: EISDIR) }
    nodes[parent]?.change(.remove(name: name, node: node))
    try end(course, .removeFile, path)
  }

  mutating func createDirectory(at path: String) throws(FileError) {
    let course = try begin(.createDirectory, path)
    let (parent, name) = try parent(of: path, for: .createDirectory)
    guard nodes[parent]?.names[name] == nil else { throw FileError(.createDirectory, path: path, errorNumber: EEXIST) }
    _ = add(SimulatedNode(isDirectory: true, permissions: 0o700), named: name, to: parent)
    try end(course, .createDirectory, path)
  }

  mutating func synchronizeDirectory(at path: String) throws(FileError) {
    let course = try begin(.synchronizeDirectory, path)
    guard let node = node(at: path) else { throw FileError(.synchronizeDirectory, path: path, errorNumber: ENOENT) }
    // Where the power goes, the names stay what they were: on their way.
    try end(course, .synchronizeDirectory, path)
    nodes[node]?.synchronizeNames()
  }

  mutating func contentsOfDirectory(at path: String) throws(FileError) -> [String] {
    let course = try begin(.contentsOfDirectory, path)
    guard let node = node(at: path), let names = nodes[node]?.names else {
      throw FileError(.contentsOfDirectory, path: path, errorNumber: ENOENT)
    }
    try end(course, .contentsOfDirectory, path)
    return names.keys.sorted()
  }

  mutating func attributes(at path: String) throws(FileError) -> FileAttributes? {
    let course = try begin(.attributes, path)
    try end(course, .attributes, path)
    return node(at: path).flatMap(attributes(ofNode:))
  }

  private func attributes(ofNode number: Int) -> FileAttributes? {
    nodes[number].map { node in
      FileAttributes(
        kind: node.isDirectory ? .directory : .file, size: Int64(node.content.count),
        modificationTime: node.changeCount, permissions: node.permissions, linkCount: linkCount(ofNode: number),
        identity: FileAttributes.Identity(device: 0, inode: UInt64(number)))
    }
  }

  private func linkCount(ofNode number: Int) -> Int {
    nodes.values.reduce(0) { $0 + $1.names.values.count { $0 == number } }
  }

  mutating func canonicalPath(of path: String) throws(FileError) -> String {
    let course = try begin(.canonicalPath, path)
    let canonical = "/" + SimulatedDisk.components(of: path).joined(separator: "/")
    _ = try parent(of: canonical, for: .canonicalPath)
    try end(course, .canonicalPath, path)
    return canonical
  }

  // MARK: Operations on open files

  /// The node of an open file; it is no more once the process died or the file was closed.
  private func node(ofFile file: Int, _ operation: FileError.Operation, _ path: String) throws(FileError) -> Int {
    guard let node = openFiles[file] else { throw FileError(operation, path: path, errorNumber: EBADF) }
    return node
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

  /// The bytes of all files that have a name or are open.
  private var usedSpace: Int {
    Set(nodes.values.flatMap(\.names.values)).union(openFiles.values)
      .reduce(0) { $0 + (nodes[$1]?.content.count ?? 0) }
  }

  mutating func truncate(_ file: Int, _ path: String, to size: Int) throws(FileError) {
    let course = try begin(.truncate, path)
    let node = try node(ofFile: file, .truncate, path)
    nodes[node]?.change(.truncate(size: size))
    try end(course, .truncate, path)
  }

  mutating func synchronize(_ file: Int, _ path: String) throws(FileError) {
    let node = try node(ofFile: file, .synchronize, path)
    let course: Course
    do throws(FileError) {
      course = try begin(.synchronize, path)
    } catch {
      // EINTR says that nothing was tried.
      if hasPower, error.errorNumber != EINTR { nodes[node]?.loseContentChanges() }
      throw error
    }
    // Where the power goes, the content stays what it was: on its way.
    try end(course, .synchronize, path)
    nodes[node]?.synchronizeContent()
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

  mutating func setPermissions(_ file: Int, _ path: String, _ permissions: UInt32) throws(FileError) {
    let course = try begin(.setPermissions, path)
    let node = try node(ofFile: file, .setPermissions, path)
    nodes[node]?.permissions = permissions
    try end(course, .setPermissions, path)
  }

  mutating func lockExclusively(_ file: Int, _ path: String) throws(FileError) -> Bool {
    let course = try begin(.lock, path)
    let node = try node(ofFile: file, .lock, path)
    try end(course, .lock, path)
    guard let owner = nodes[node]?.lockOwner else {
      nodes[node]?.lockOwner = file
      return true
    }
    return owner == file
  }

  /// Closes a file, which is no operation that can fail: what had to be durable was synchronized.
  mutating func close(_ file: Int) {
    guard let node = openFiles.removeValue(forKey: file) else { return }
    if nodes[node]?.lockOwner == file { nodes[node]?.lockOwner = nil }
  }

  // MARK: From outside

  func content(at path: String) -> [UInt8]? {
    node(at: path).flatMap { nodes[$0] }.flatMap { $0.isDirectory ? nil : $0.content }
  }

  /// Puts a file in place, durably, as if it had always been there.
  mutating func place(_ content: [UInt8], at path: String) throws(FileError) {
    let (parent, name) = try parent(of: path, for: .write)
    let number =
      nodes[parent]?.names[name] ?? add(SimulatedNode(isDirectory: false, permissions: 0o600), named: name, to: parent)
    nodes[parent]?.synchronizeNames()
    nodes[number]?.content = content
    nodes[number]?.changeCount += 1
    nodes[number]?.durableContent = content
    nodes[number]?.contentChanges.removeAll()
  }
}
