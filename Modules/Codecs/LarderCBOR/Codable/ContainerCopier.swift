/// Copies the containers of one type.
///
/// Generic code that copies a `KeyedDecodingContainer` asks the runtime for its type every time, which takes longer than
/// to read a field. A class brings the types that it is made of along.
final class ContainerCopier<Container> {
  /// The container in a memory.
  // Inlined it would lose the type again.
  @inline(never)
  static func copy(_ memory: UnsafeRawPointer) -> Container {
    memory.assumingMemoryBound(to: Container.self).pointee
  }
}
