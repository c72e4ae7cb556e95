# The program with its server: docker build -t nutch2py . && docker run -p 127.0.0.1:8080:8080 -v crawl:/data nutch2py
# Every command: docker run -v crawl:/data nutch2py crawl https://www.example.org/
FROM python:3.11-slim-bookworm AS build
COPY . /src
RUN /src/scripts/image /opt/nutch2py

FROM python:3.11-slim-bookworm
COPY --from=build /opt/nutch2py /opt/nutch2py
RUN useradd --uid 1000 --create-home nutch2py && install -d -o nutch2py /data
ENV PATH=/opt/nutch2py/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER nutch2py
# tables and indexes; a folder conf in it is the configuration folder, unless NUTCH_CONF_DIR names another
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --start-period=30s \
  CMD ["python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health', timeout=5)"]
ENTRYPOINT ["sh", "-c", "[ ! -d conf ] || export NUTCH_CONF_DIR=\"${NUTCH_CONF_DIR:-$PWD/conf}\"; exec nutch2py \"$@\"", "nutch2py"]
CMD ["serve", "-host", "0.0.0.0"]
