# The hello example: docker build -t tuza-hello . && docker run --rm -p 8080:8080 tuza-hello
# The tests: docker build --target test .
FROM debian:12-slim AS sources
WORKDIR /src
COPY .ci/packages.sh .ci/
RUN bash -c '. .ci/packages.sh && need build' \
 && apt-get install -y -qq --no-install-recommends ca-certificates
COPY . .

FROM sources AS test
RUN bash -c '. .ci/packages.sh && need test'
RUN cmake --preset release -DTUZA_TESTS=ON -DTUZA_TEST_AARCH64=OFF -DTUZA_BENCHMARKS=OFF \
 && cmake --build build/release
RUN ctest --test-dir build/release --output-on-failure --no-tests=error --parallel "$(nproc)"

FROM sources AS build
RUN cmake --preset release -DTUZA_TESTS=OFF -DTUZA_BENCHMARKS=OFF \
 && cmake --build build/release --target hello probe \
 && bash .ci/image-root.sh /image build/release/examples/hello build/release/examples/probe

# No shell, no package manager: the programs, the libraries they are linked with, certificate authorities.
FROM scratch
COPY --from=build /image /
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
# Environment variables set the ports independently of the arguments that the container is run with. They override a
# mounted configuration; --listen and --set override them. The admin listener, which the health check asks, is for the
# container's network: its port is not exposed, so -P does not publish it. With --network host every process on the
# machine could reach it: use -e TUZA_ADMIN_LISTEN=127.0.0.1:9090 there.
ENV TUZA_HTTP_LISTEN=0.0.0.0:8080 TUZA_ADMIN_LISTEN=0.0.0.0:9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/usr/bin/probe", "127.0.0.1:9090", "/healthz"]
ENTRYPOINT ["/usr/bin/hello"]
