import Synchronization

/// Keeps the memory of states that are not in use, so that not every value needs a new one.
///
/// Memory that was once taken is never given back to the system, because somebody may have kept an encoder or decoder that
/// points into it: it finds there, for good, that it is finished. There is as much of it as there were ever values being
/// encoded at the same moment.
struct StatePool: ~Copyable, Sendable {
  /// A place, on a cache line of its own.
  private struct Slot: ~Copyable, Sendable {
    let state = Atomic<UInt>(0)
    private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0)
  }

  private let first = Slot()
  private let second = Slot()
  private let third = Slot()
  private let fourth = Slot()

  /// What found no place; addresses.
  private let others = Mutex<[UInt]>([])

  /// Takes a state, if there is one.
  func take() -> UnsafeMutableRawPointer? {
    let address = exchange(0)
    return UnsafeMutableRawPointer(bitPattern: address != 0 ? address : others.withLock { $0.popLast() } ?? 0)
  }

  /// Leaves a state.
  func leave(_ state: UnsafeMutableRawPointer) {
    let other = exchange(UInt(bitPattern: state))
    if other != 0 { others.withLock { $0.append(other) } }
  }

  private func exchange(_ state: UInt) -> UInt {
    // Threads have stacks of their own, so this tells them apart: each is likely to find the state that it left.
    let thread = withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { UInt(bitPattern: $0.baseAddress) &>> 19 }
    switch (thread &* 0x9E37_79B9_7F4A_7C15) &>> 62 {
    case 0: return first.state.exchange(state, ordering: .acquiringAndReleasing)
    case 1: return second.state.exchange(state, ordering: .acquiringAndReleasing)
    case 2: return third.state.exchange(state, ordering: .acquiringAndReleasing)
    default: return fourth.state.exchange(state, ordering: .acquiringAndReleasing)
    }
  }
}
