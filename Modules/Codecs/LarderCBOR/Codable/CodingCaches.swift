import Larder
import Synchronization

/// A cache of facts about types that take long to find out.
///
/// If two types share a slot, the cache keeps the last one.
struct TypeCache<Fact>: ~Copyable {
  private struct Entry {
    let type: ObjectIdentifier
    let fact: Fact
  }

  private static var count: Int { 256 }

  /// `nil` until the first fact is cached.
  private var entries: UnsafeMutablePointer<Entry?>?

  init() {}

  deinit {
    entries?.deinitialize(count: TypeCache.count)
    entries?.deallocate()
  }

  private mutating func allocate() -> UnsafeMutablePointer<Entry?> {
    let memory = UnsafeMutablePointer<Entry?>.allocate(capacity: TypeCache.count)
    memory.initialize(repeating: nil, count: TypeCache.count)
    entries = memory
    return memory
  }

  /// Returns the cached fact about a type, or finds it out and caches it.
  @inline(__always)
  mutating func fact(of type: Any.Type, _ find: () -> Fact) -> Fact {
    let type = ObjectIdentifier(type)
    let address = Int(bitPattern: type)
    let entry = (entries ?? allocate()) + ((address &>> 4 ^ address &>> 12) & (TypeCache.count - 1))
    if let known = entry.pointee, known.type == type { return known.fact }
    let fact = find()
    entry.pointee = Entry(type: type, fact: fact)
    return fact
  }
}

/// A cache of keyed containers, from which the next value of a type takes its containers.
///
/// Creating a container takes a memory allocation and several lookups in the Swift runtime, as long as encoding a few
/// fields.
///
/// `KeyedEncodingContainer` and `KeyedDecodingContainer` are structs that wrap one object. The cache reuses an object
/// only if it holds the last reference, so a container that a type has kept never becomes that of another value.
struct ContainerCache: ~Copyable {
  /// A container that is no longer in use.
  struct Unused {
    /// The ID that the container expects its level to have.
    let id: Int
    fileprivate let memory: UnsafeRawPointer
    fileprivate let copier: AnyClass

    /// Returns the container for use.
    ///
    /// - Parameter type: The type of the cached containers, with the requested type of keys.
    @inline(__always)
    func container<Container>(_ type: Container.Type) -> Container {
      unsafeBitCast(copier, to: ContainerCopier<Container>.Type.self).copy(memory)
    }
  }

  private struct Entry {
    /// The type of the keys.
    var type: ObjectIdentifier?
    /// The index of the level.
    var index = 0
    /// The ID that the container expects its level to have.
    var id = 0
    var object: AnyObject?
    /// The `ContainerCopier` of the container's type.
    var copier: AnyClass?
  }

  private static var count: Int { 16 }

  /// `nil` until the first container is kept.
  private var entries: UnsafeMutablePointer<Entry>?

  init() {}

  deinit {
    entries?.deinitialize(count: ContainerCache.count)
    entries?.deallocate()
  }

  @inline(__always)
  private static func place(_ type: ObjectIdentifier, _ index: Int) -> Int {
    (Int(bitPattern: type) &>> 4 ^ index) & (count - 1)
  }

  /// Returns the container of a level if it is no longer in use.
  @inline(__always)
  func unused(keyedBy key: Any.Type, at index: Int) -> Unused? {
    let key = ObjectIdentifier(key)
    guard let entries else { return nil }
    let entry = entries + ContainerCache.place(key, index)
    // The entry is not copied, because a copy would also hold the object.
    guard entry.pointee.type == key, entry.pointee.index == index, isKnownUniquelyReferenced(&entry.pointee.object),
      let copier = entry.pointee.copier
    else { return nil }
    // The pointer remains valid after the call, because the memory is that of the entry itself.
    let memory = withUnsafePointer(to: &entry.pointee.object) { UnsafeRawPointer($0) }
    return Unused(id: entry.pointee.id, memory: memory, copier: copier)
  }

  /// Keeps a container if it has the expected layout.
  mutating func keep<Container>(_ container: Container, keyedBy key: Any.Type, at index: Int, id: Int) {
    guard let object = ContainerCache.object(of: container) else { return }
    let key = ObjectIdentifier(key)
    if entries == nil {
      entries = .allocate(capacity: ContainerCache.count)
      entries?.initialize(repeating: Entry(), count: ContainerCache.count)
    }
    entries?[ContainerCache.place(key, index)] = Entry(
      type: key, index: index, id: id, object: object, copier: ContainerCopier<Container>.self)
  }

  /// Returns the object of a container, or `nil` if the container is not just one object.
  private static func object<Container>(of container: Container) -> AnyObject? {
    let children = Array(Mirror(reflecting: container).children)
    guard children.count == 1, let value = children.first?.value, type(of: value) is AnyClass,
      MemoryLayout<Container>.size == MemoryLayout<UInt>.size
    else { return nil }
    let object = value as AnyObject
    let bits = unsafeBitCast(container, to: UInt.self)
    return UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()) == bits ? object : nil
  }
}

/// Copies the containers of one type.
///
/// Generic code that copies a `KeyedDecodingContainer` queries the runtime for its type every time. This takes longer
/// than reading a field. A generic class carries its type arguments with it.
final class ContainerCopier<Container> {
  /// Returns a copy of the container at an address.
  // If inlined, the code would lose its type argument.
  @inline(never)
  static func copy(_ memory: UnsafeRawPointer) -> Container {
    memory.assumingMemoryBound(to: Container.self).pointee
  }
}

/// The levels of a value, in the order they were opened.
struct LevelStack<Level>: ~Copyable {
  /// The maximum number of levels whose memory is kept after a value is finished.
  private static var keptCapacity: Int { 1024 }

  private(set) var start = UnsafeMutablePointer<Level>.allocate(capacity: 0)
  var count = 0
  private var capacity = 0

  /// The previous memory, before it grew.
  ///
  /// It stays valid, because a caller may have an address in it.
  private var former: [UnsafeMutablePointer<Level>] = []

  init() {}

  /// Adds a level, and returns its index.
  @inline(__always)
  mutating func append(_ level: Level) -> Int {
    if count == capacity { grow() }
    (start + count).initialize(to: level)
    count += 1
    return count - 1
  }

  private mutating func grow() {
    capacity = max(capacity * 2, 16)
    let larger = UnsafeMutablePointer<Level>.allocate(capacity: capacity)
    larger.update(from: start, count: count)
    former.append(start)
    start = larger
  }

  /// Removes all levels.
  ///
  /// - Parameter keepsMemory: A Boolean value that indicates whether the memory is kept, unless it is large.
  mutating func removeAll(keepsMemory: Bool) {
    count = 0
    if keepsMemory, capacity <= LevelStack.keptCapacity { return }
    for levels in former + [start] { levels.deallocate() }
    former = []
    start = .allocate(capacity: 0)
    capacity = 0
  }
}

/// A pool of the memory of unused states, so not every value needs an allocation.
///
/// The memory is never returned to the system, because a type may keep an encoder or decoder that points into it. Such
/// an encoder or decoder must find there, permanently, that it is finished. The pool grows to the largest number of
/// values that were ever encoded or decoded at the same time.
struct StatePool: ~Copyable, Sendable {
  /// A slot for one state, on a cache line of its own.
  private struct Slot: ~Copyable, Sendable {
    let state = Atomic<UInt>(0)
    private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0)
  }

  private let first = Slot()
  private let second = Slot()
  private let third = Slot()
  private let fourth = Slot()

  /// The addresses of the states that found no free slot.
  private let others = Locked<[UInt]>([])

  /// Removes a state from the pool and returns it, or returns `nil` if the pool is empty.
  func take() -> UnsafeMutableRawPointer? {
    let address = exchange(0)
    return UnsafeMutableRawPointer(bitPattern: address != 0 ? address : others.withLock { $0.popLast() } ?? 0)
  }

  /// Adds a state to the pool.
  func leave(_ state: UnsafeMutableRawPointer) {
    let other = exchange(UInt(bitPattern: state))
    if other != 0 { others.withLock { $0.append(other) } }
  }

  private func exchange(_ state: UInt) -> UInt {
    // The address of the stack identifies the thread, so each thread is likely to find the state that it returned.
    let thread = withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { UInt(bitPattern: $0.baseAddress) &>> 19 }
    switch (thread &* 0x9E37_79B9_7F4A_7C15) &>> 62 {
    case 0: return first.state.exchange(state, ordering: .acquiringAndReleasing)
    case 1: return second.state.exchange(state, ordering: .acquiringAndReleasing)
    case 2: return third.state.exchange(state, ordering: .acquiringAndReleasing)
    default: return fourth.state.exchange(state, ordering: .acquiringAndReleasing)
    }
  }
}
