/// Stands for one who wants to know of memory pressure, for as long as it lives.
final class MemoryPressureObservation: Sendable {}
