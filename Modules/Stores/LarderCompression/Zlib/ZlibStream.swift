#if Compression
internal import CZlib

/// The memory of a `z_stream`, at one place for as long as it lives: the library keeps its address.
typealias ZlibStream = UnsafeMutablePointer<z_stream>

extension UnsafeMutablePointer<z_stream> {
  /// Memory for a stream, zeroed: unless told otherwise the library allocates with its own functions.
  static func allocateZeroed() -> ZlibStream {
    let stream = ZlibStream.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    return stream
  }

  /// Gives the memory back; what the library allocated is freed before.
  func deallocateInitialized() {
    deinitialize(count: 1)
    deallocate()
  }

  /// Says where the next call reads and writes.
  ///
  /// - Parameters:
  ///   - input: Memory that stays good until the call is over, of at most `UInt32.max` bytes.
  ///   - output: Memory that stays good until the call is over, of at most `UInt32.max` bytes.
  func use(_ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer) {
    // The library only reads its input, but does not say so.
    pointee.next_in = UnsafeMutableRawPointer(mutating: input.baseAddress)?.assumingMemoryBound(to: UInt8.self)
    pointee.avail_in = UInt32(truncatingIfNeeded: input.count)
    pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    pointee.avail_out = UInt32(truncatingIfNeeded: output.count)
  }

  /// Forgets where the last call read and wrote.
  func forgetBuffers() {
    pointee.next_in = nil
    pointee.avail_in = 0
    pointee.next_out = nil
    pointee.avail_out = 0
  }
}
#endif
